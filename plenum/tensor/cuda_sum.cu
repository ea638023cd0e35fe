#include <algorithm>
#include <array>
#include <cstdint>

#include <cuda_bf16.h>

#include "plenum/base/check.h"
#include "plenum/tensor/cuda_check.h"
#include "plenum/tensor/cuda_sum.h"

namespace plenum::tensor {
namespace {

constexpr std::size_t kMostRanks = 16;
constexpr unsigned kThreads = 256;
constexpr std::size_t kMostBlocks = 256;

template <typename Element>
struct Places {
  const Element* sources[kMostRanks];
  Element* destinations[kMostRanks];
  int num_sources;
  int num_destinations;
};

__device__ float widened(float value) {
  return value;
}
__device__ double widened(double value) {
  return value;
}
__device__ float widened(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

template <typename Element>
__global__ void sum_kernel(Places<Element> places, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    auto sum = widened(places.sources[0][i]);
    for (int source = 1; source < places.num_sources; ++source) sum += widened(places.sources[source][i]);
    for (int destination = 0; destination < places.num_destinations; ++destination)
      places.destinations[destination][i] = static_cast<Element>(sum);
  }
}

template <typename Element>
void launch(cudaStream_t stream, std::span<const std::byte* const> sources,
            std::span<std::byte* const> destinations, std::size_t count) {
  Places<Element> places{};
  places.num_sources = static_cast<int>(sources.size());
  places.num_destinations = static_cast<int>(destinations.size());
  for (std::size_t i = 0; i < sources.size(); ++i)
    places.sources[i] = reinterpret_cast<const Element*>(sources[i]);
  for (std::size_t i = 0; i < destinations.size(); ++i)
    places.destinations[i] = reinterpret_cast<Element*>(destinations[i]);
  const std::size_t num_blocks = std::min((count + kThreads - 1) / kThreads, kMostBlocks);
  sum_kernel<<<static_cast<unsigned>(num_blocks), kThreads, 0, stream>>>(places, count);
}

}  // namespace

void sum_on_gpu(cudaStream_t stream, std::span<const std::byte* const> sources,
                std::span<std::byte* const> destinations, std::size_t count, DType dtype) {
  base::check(!sources.empty() && sources.size() <= kMostRanks && destinations.size() <= kMostRanks,
              "the GPU sums what at most {} ranks have: {}", kMostRanks, sources.size());
  if (count == 0) return;
  switch (dtype) {
    case DType::Float32:
      launch<float>(stream, sources, destinations, count);
      break;
    case DType::Float64:
      launch<double>(stream, sources, destinations, count);
      break;
    case DType::BFloat16:
      launch<__nv_bfloat16>(stream, sources, destinations, count);
      break;
    default:
      base::check(false, "the GPU does not sum elements of {}", dtype_name(dtype));
  }
  check_cuda(cudaGetLastError(), "sum what ranks have");
}

}  // namespace plenum::tensor

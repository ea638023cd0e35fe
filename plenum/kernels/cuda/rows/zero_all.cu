#include <algorithm>

#include "plenum/kernels/cuda/rows/zero_all.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {
namespace {

struct Part {
  float* begin;
  std::int64_t count;
};

/// As many as the arguments of a launch have room for: 4 KiB.
constexpr std::size_t kPartsOfLaunch = 250;

struct Parts {
  Part part[kPartsOfLaunch];
};

constexpr int kThreads = 256;
/// Most parts are a vector of a model's width; a few are tables.
constexpr unsigned kBlocksOfPart = 16;

__global__ void __launch_bounds__(kThreads) zero_parts(const __grid_constant__ Parts parts) {
  const Part part = parts.part[blockIdx.x];
  for (std::int64_t i = std::int64_t{blockIdx.y} * kThreads + threadIdx.x; i < part.count;
       i += std::int64_t{kBlocksOfPart} * kThreads) {
    part.begin[i] = 0;
  }
}

}  // namespace

void zero_all(const tensor::Stream& stream, std::span<const tensor::TensorView> tensors) {
  while (!tensors.empty()) {
    const std::size_t count = std::min(tensors.size(), kPartsOfLaunch);
    Parts parts{};
    for (std::size_t i = 0; i < count; ++i) {
      parts.part[i] = {tensors[i].data<float>(), tensors[i].num_elements()};
    }
    zero_parts<<<dim3(static_cast<unsigned>(count), kBlocksOfPart), kThreads, 0, stream.cuda().handle()>>>(
        parts);
    tensor::check_cuda(cudaGetLastError(), "set tensors to zero");
    tensors = tensors.subspan(count);
  }
}

}  // namespace plenum::kernels::cuda

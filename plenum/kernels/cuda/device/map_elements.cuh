#pragma once

#include "plenum/kernels/cuda/device/vector_io.cuh"
#include "plenum/tensor/cuda_check.h"
#include "plenum/tensor/stream.h"

namespace plenum::kernels::cuda {

inline constexpr int kMapThreads = 256;

/// Eight elements for each thread, as `map_elements` says.
template <bool kIsAligned, typename Function, typename Output, typename... Inputs>
__global__ void __launch_bounds__(kMapThreads)
    map_vectors(std::int64_t size, Function function, Output* y, const Inputs*... inputs) {
  const std::int64_t begin = (std::int64_t{blockIdx.x} * kMapThreads + threadIdx.x) * kVectorWidth;
  const auto map = [&](auto is_aligned, int count) {
    const auto map_loaded = [&](const auto&... loaded) {
      FloatVector result;
#pragma unroll
      for (int i = 0; i < kVectorWidth; ++i) result[i] = function(loaded[i]...);
      store_vector<is_aligned()>(y + begin, 0, count, result);
    };
    map_loaded(load_vector<is_aligned()>(inputs + begin, 0, count)...);
  };
  if (kIsAligned && begin + kVectorWidth <= size) {
    map(std::true_type(), kVectorWidth);
  } else if (begin < size) {
    map(std::false_type(), static_cast<int>(min(size - begin, std::int64_t{kVectorWidth})));
  }
}

/// Computes y[i] = function(inputs[i]...) for `size` elements. y may be one of the inputs.
template <typename Function, typename Output, typename... Inputs>
void map_elements(const tensor::Stream& stream, std::int64_t size, Function function, Output* y,
                  const Inputs*... inputs) {
  if (size == 0) return;
  constexpr std::int64_t kElementsOfBlock = std::int64_t{kMapThreads} * kVectorWidth;
  const auto num_blocks = static_cast<unsigned>((size + kElementsOfBlock - 1) / kElementsOfBlock);
  const auto is_aligned = [](const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
  };
  const auto kernel = is_aligned(y) && (is_aligned(inputs) && ...)
                          ? map_vectors<true, Function, Output, Inputs...>
                          : map_vectors<false, Function, Output, Inputs...>;
  kernel<<<num_blocks, kMapThreads, 0, stream.cuda().handle()>>>(size, function, y, inputs...);
  tensor::check_cuda(cudaGetLastError(), "start work on every element");
}

}  // namespace plenum::kernels::cuda

#include "bench/gpu/profile/copy_rate.h"

#include "bench/gpu/timing.h"

namespace plenum::bench {

double measure_copy_rate() {
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  void* taken = nullptr;
  tensor::check_cuda(cudaMalloc(&taken, 2 * kBytes), "take memory for a copy");
  auto* const memory = static_cast<std::byte*>(taken);
  const double ms =
      median_ms(nullptr,
                [&](int run) {
                  std::byte* const from = memory + run % 2 * kBytes;
                  std::byte* const to = memory + (run + 1) % 2 * kBytes;
                  tensor::check_cuda(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice), "copy");
                },
                {.num_warm_up = 5, .num_samples = 11, .runs_of_sample = 4});
  tensor::check_cuda(cudaFree(taken), "free memory");
  return 2 * static_cast<double>(kBytes) / (ms * 1e-3);
}

}  // namespace plenum::bench

#include "plenum/kernels/gemm_rate.h"

#include <algorithm>
#include <chrono>

#include "plenum/kernels/linear.h"
#include "plenum/tensor/arena.h"
#include "plenum/tensor/stream.h"

namespace plenum::kernels {

double measure_gemm_flops(base::ThreadPool& pool, double seconds) {
  constexpr std::int64_t T = 1024;
  constexpr std::int64_t D = 768;
  constexpr std::int64_t E = 768;
  constexpr double kFlops = 2.0 * T * D * E;
  using Clock = std::chrono::steady_clock;

  tensor::MemoryLayout layout;
  const tensor::Block x_TD = layout.add("rate", tensor::DType::Float32, {T, D});
  const tensor::Block w_ED = layout.add("rate", tensor::DType::Float32, {E, D});
  const tensor::Block y_TE = layout.add("rate", tensor::DType::Float32, {T, E});
  const tensor::Block scratch =
      layout.add("rate", tensor::DType::Byte,
                 {static_cast<std::int64_t>(pool.num_threads() * linear_scratch_bytes(tensor::Device::Cpu))});
  const tensor::Arena arena(layout);
  const tensor::Stream stream(pool, arena.view(scratch).span<std::byte>());
  // What is multiplied changes nothing but zeros in memory that was never written, which all lie in one page.
  for (const tensor::Block& block : {x_TD, w_ED}) std::ranges::fill(arena.view(block).span<float>(), 1.0F);

  double best_seconds = 0;
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point start = begin, end;; start = end) {
    linear_forward(stream, {.x_TD = arena.view(x_TD), .w_ED = arena.view(w_ED), .y_TE = arena.view(y_TE)});
    end = Clock::now();
    const double taken = std::chrono::duration<double>(end - start).count();
    if (best_seconds == 0 || taken < best_seconds) best_seconds = taken;
    if (std::chrono::duration<double>(end - begin).count() >= seconds) return kFlops / best_seconds;
  }
}

}  // namespace plenum::kernels

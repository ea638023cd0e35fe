#pragma once

#include <cstddef>

#include "plenum/base/thread_pool.h"

namespace plenum::kernels {

// What training on a device is measured against: matrix products, repeated for about that long. Allocates
// what it needs for the time of the call.

/// In FLOP/s. The two differ where a device lowers its clock under load.
struct GemmRate {
  double fastest = 0;    ///< of the fastest burst
  double sustained = 0;  ///< over the second half of the time
};

/// On the pool's threads, of the size of a layer of BERT-base.
GemmRate measure_gemm_rate(base::ThreadPool& pool, double seconds);

/// On the GPU, in bf16, large enough to fill it. Takes up to so much of its memory.
inline constexpr std::size_t kCudaGemmRateBytes = std::size_t{320} << 20;
GemmRate measure_cuda_gemm_rate(double seconds);

}  // namespace plenum::kernels

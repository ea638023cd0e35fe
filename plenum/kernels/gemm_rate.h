#pragma once

#include <cstddef>

#include "plenum/base/thread_pool.h"

namespace plenum::kernels {

// Returns the FLOP/s of the fastest of the matrix products that it repeats for about that long: what training
// on this device is measured against. Allocates what it needs for the time of the call.

/// On the pool's threads, of the size of a layer of BERT-base.
double measure_gemm_flops(base::ThreadPool& pool, double seconds);

/// On the GPU, in bf16, large enough to fill it. Takes up to so much of its memory.
inline constexpr std::size_t kCudaGemmRateBytes = std::size_t{320} << 20;
double measure_cuda_gemm_flops(double seconds);

}  // namespace plenum::kernels

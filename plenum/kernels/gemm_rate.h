#pragma once

#include "plenum/base/thread_pool.h"

namespace plenum::kernels {

/// Returns the FLOP/s of the fastest of the matrix products (of the size of a layer of BERT-base) that it
/// repeats for about that long on the pool's threads: what training on this machine is measured against.
/// Allocates what it needs for the time of the call.
double measure_gemm_flops(base::ThreadPool& pool, double seconds);

}  // namespace plenum::kernels

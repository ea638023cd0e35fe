#pragma once

#include "plenum/tensor/stream.h"

namespace plenum::kernels {

/// Returns the FLOP/s of the fastest of the matrix products (of the size of a layer of BERT-base) that it
/// repeats for about that long on the stream's threads: what training on this machine is measured against.
/// Allocates what it needs for the time of the call; the stream's scratch must hold linear_scratch_bytes()
/// per thread.
double measure_gemm_flops(const tensor::Stream& stream, double seconds);

}  // namespace plenum::kernels

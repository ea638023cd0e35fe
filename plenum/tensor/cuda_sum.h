#pragma once

#include <cstddef>
#include <span>

#include <cuda_runtime_api.h>

#include "plenum/tensor/dtype.h"

namespace plenum::tensor {

/// WorkQueue::sum() of a stream. At most 16 sources and destinations, of Float32, Float64 or BFloat16 (summed
/// in Float32).
void sum_on_gpu(cudaStream_t stream, std::span<const std::byte* const> sources,
                std::span<std::byte* const> destinations, std::size_t count, DType dtype);

}  // namespace plenum::tensor

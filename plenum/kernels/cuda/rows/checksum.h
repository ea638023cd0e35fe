#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/tensor/cuda_stream.h"

namespace plenum::kernels::cuda {

/// Adds a checksum of the bytes of a matrix, whose rows are of an even number of bytes, to `*sum` on the GPU.
/// It is a sum of integers, so equal matrices have equal ones whatever the order.
void add_checksum(const tensor::CudaStream& queue, const void* matrix, std::int64_t num_rows,
                  std::size_t row_bytes, std::size_t stride_bytes, std::uint64_t* sum);

}  // namespace plenum::kernels::cuda

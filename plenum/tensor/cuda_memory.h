#pragma once

#include <cstddef>

#include "plenum/tensor/cuda_stream.h"

namespace plenum::tensor {

/// Memory of the GPU, zero at first. Throws UserError, with the number, if it does not give that much.
std::byte* allocate_cuda(std::size_t num_bytes);
void free_cuda(std::byte* memory) noexcept;

/// Puts a copy into the stream's queue: between any of host and GPU. Memory of the host that is not pinned
/// has been read when this returns.
void copy_cuda(const CudaStream& stream, const void* from, void* to, std::size_t num_bytes);
void zero_cuda(const CudaStream& stream, void* memory, std::size_t num_bytes);

}  // namespace plenum::tensor

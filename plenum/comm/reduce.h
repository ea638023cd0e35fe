#pragma once

#include <cstddef>
#include <span>

#include "plenum/tensor/dtype.h"

namespace plenum::comm {

/// Whether elements of a type have a sum here: the floating-point types that the CPU has, and integers.
bool can_reduce(tensor::DType dtype);

/// Sums `num_bytes` bytes of all sources, in their order, and overwrites every destination with the
/// result. A destination may be one of the sources. How a sum is cut into calls changes no bit of it.
void reduce(std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
            std::size_t num_bytes, tensor::DType dtype);

}  // namespace plenum::comm

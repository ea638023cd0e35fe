#pragma once

#include <span>

#include "plenum/comm/communicator.h"

namespace plenum::comm::local {

/// Sums `num_bytes` bytes of all sources, in their order, and overwrites every destination with the
/// result. A destination may be one of the sources.
void reduce(std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
            std::size_t num_bytes, tensor::DType dtype);

}  // namespace plenum::comm::local

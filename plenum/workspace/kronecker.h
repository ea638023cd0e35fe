#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/tensor/device.h"

namespace plenum::workspace {

// Of the Kronecker factors of linear maps (K-FAC).

/// Columns that an inversion eliminates at a time.
inline constexpr std::int64_t kInversePanel = 64;
/// Between which the inversion of an [N, N] matrix may be cut: one for each panel, and one that finishes.
constexpr std::int64_t num_inverse_steps(std::int64_t size) {
  return (size + kInversePanel - 1) / kInversePanel + 1;
}

/// Float64 numbers that are known of a map's inverses.
inline constexpr std::int64_t kNumInverseStates = 7;

/// Scratch that second moments, inversions and preconditioning need, on the CPU each thread, for maps of up
/// to so many weights.
std::size_t kronecker_scratch_bytes(tensor::Device device, std::int64_t num_weights);

}  // namespace plenum::workspace

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plenum/tensor/device.h"

namespace plenum::workspace {

// Of the Kronecker factors of linear maps (K-FAC).

/// Columns that an inversion eliminates at a time.
inline constexpr std::int64_t kInversePanel = 64;
/// Between which the inversion of an [N, N] matrix may be cut: one for each panel, and one that finishes.
constexpr std::int64_t num_inverse_steps(std::int64_t size) {
  return (size + kInversePanel - 1) / kInversePanel + 1;
}

/// Matrices that the GPU inverts at once; more are inverted in groups of so many.
inline constexpr std::int64_t kInversesAtOnce = 64;
/// Elements that the inversion of matrices of these sizes works in, beside the matrices, in that order: on
/// the GPU for all that it inverts at once, on the CPU for one.
std::int64_t inverse_room_elements(tensor::Device device, std::span<const std::int64_t> sizes);

/// Gradients of so many weights that the GPU preconditions at once, where they are of one shape: as many as
/// fill it, and one at least.
constexpr std::int64_t num_preconditioned_at_once(std::int64_t num_weights) {
  constexpr std::int64_t kMostWeights = std::int64_t{1} << 23;
  return num_weights < kMostWeights ? kMostWeights / (num_weights > 0 ? num_weights : 1) : 1;
}
/// Of a gradient, the weights whose squares a block of the GPU sums.
inline constexpr std::int64_t kPreconditionedBlock = 8192;
constexpr std::int64_t num_preconditioned_blocks(std::int64_t num_weights) {
  return (num_weights + kPreconditionedBlock - 1) / kPreconditionedBlock;
}
/// Elements that the preconditioning of so many gradients of so many weights each works in.
std::int64_t precondition_room_elements(tensor::Device device, std::int64_t num_weights,
                                        std::int64_t num_gradients);

/// Float64 numbers that are known of a map's inverses.
inline constexpr std::int64_t kNumInverseStates = 7;

/// Scratch that second moments, inversions and preconditioning need, on the CPU each thread.
std::size_t kronecker_scratch_bytes(tensor::Device device);

}  // namespace plenum::workspace

#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/batch/label_counts.h"
#include "plenum/tensor/device.h"

namespace plenum::workspace {

// Of the optimizer.

/// Float64 scalars of a step that lie where the kernels run: each objective's loss and its scale, and what
/// belongs to the whole step.
inline constexpr std::int64_t kNumStepScalars = 2 * static_cast<std::int64_t>(batch::kMostObjectives) + 12;

/// Elements of a tensor that a block of the GPU takes at most: the fewer, the closer together in memory is
/// what all blocks work on, and the less is idle at the end. 4096 take 5 % less time than 32768.
inline constexpr std::int64_t kOptimizerChunk = 1 << 12;
/// Chunks of a tensor.
constexpr std::int64_t num_optimizer_chunks(std::int64_t num_elements) {
  return (num_elements + kOptimizerChunk - 1) / kOptimizerChunk;
}

/// Elements of the gradient whose squares a block of the GPU adds up.
inline constexpr std::int64_t kSquaresBlock = 1 << 16;
constexpr std::int64_t num_square_blocks(std::int64_t num_elements) {
  return (num_elements + kSquaresBlock - 1) / kSquaresBlock;
}
/// The sums of squares of a chunk's weights and of their directions.
inline constexpr std::size_t kLambSquaresBytes = 2 * sizeof(double);

/// Scratch that any op of the optimizer needs on the GPU, for buffers of so many elements in so many tensors.
std::size_t optimizer_scratch_bytes(tensor::Device device, std::int64_t num_elements,
                                    std::int64_t num_ranges);

}  // namespace plenum::workspace

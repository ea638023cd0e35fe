#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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

/// Matrices of one shape that lie in flat buffers at equal distances, as the same map of all layers does.
struct FlatMatrices {
  std::int64_t begin = 0;   ///< of the first
  std::int64_t stride = 0;  ///< from one to the next
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool is_decayed = false;

  std::int64_t num_elements() const { return rows * columns; }  ///< of one
  std::int64_t least_size() const { return rows < columns ? rows : columns; }
  std::int64_t largest_size() const { return rows < columns ? columns : rows; }
  std::int64_t begin_of(std::int64_t index) const { return begin + index * stride; }

  friend bool operator==(const FlatMatrices&, const FlatMatrices&) = default;
};

/// Elements, of the device's compute type, that Newton-Schulz iterations work in beside the matrices: the two
/// squares of a matrix, on the GPU those of all matrices of a group, which are multiplied side by side. On
/// the CPU the second place of one matrix too.
std::int64_t newton_schulz_room(tensor::Device device, const FlatMatrices& matrices);
/// Of the group that needs most.
std::int64_t newton_schulz_room(tensor::Device device, std::span<const FlatMatrices> groups);

/// Numbers that tell a block of the GPU of its chunk of a matrix.
inline constexpr std::int64_t kMatrixChunkNumbers = 8;
/// Chunks of all matrices of all groups.
std::int64_t num_matrix_chunks(std::span<const FlatMatrices> groups);

/// Scratch that any op of the optimizer needs on the GPU, for buffers of so many elements in so many tensors.
std::size_t optimizer_scratch_bytes(tensor::Device device, std::int64_t num_elements,
                                    std::int64_t num_ranges);

}  // namespace plenum::workspace

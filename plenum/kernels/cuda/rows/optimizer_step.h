#pragma once

#include "plenum/kernels/optimizer_step.h"

namespace plenum::kernels::cuda {

/// Elements of a chunk at most: the fewer, the closer together in memory is what all blocks work on, and the
/// less is idle at the end. 4096 take 5 % less time than 32768.
inline constexpr std::int64_t kOptimizerChunk = 1 << 12;

void add_gradient_squares(const tensor::Stream& stream, const GradientSquares& args);
void decide_step(const tensor::Stream& stream, const StepDecision& args);
void adam_step(const tensor::Stream& stream, const AdamStep& args);
void lamb_step(const tensor::Stream& stream, const AdamStep& args);

/// Elements of the gradient whose squares a block adds up.
inline constexpr std::int64_t kSquaresBlock = 1 << 16;
inline std::int64_t num_square_blocks(std::int64_t num_elements) {
  return (num_elements + kSquaresBlock - 1) / kSquaresBlock;
}

/// The sums of squares of weights and of their directions.
struct LambSquares {
  double weight, direction;
};

inline std::size_t optimizer_scratch_bytes(std::int64_t num_elements, std::int64_t num_ranges) {
  const auto squares = static_cast<std::size_t>(num_square_blocks(num_elements)) * sizeof(double);
  const auto chunks = static_cast<std::size_t>(num_elements / kOptimizerChunk + num_ranges);
  const std::size_t lamb =
      chunks * sizeof(LambSquares) + static_cast<std::size_t>(num_ranges) * sizeof(float);
  return squares > lamb ? squares : lamb;
}

}  // namespace plenum::kernels::cuda

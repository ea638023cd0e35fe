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
std::size_t optimizer_scratch_bytes(std::int64_t num_elements, std::int64_t num_ranges);

}  // namespace plenum::kernels::cuda

#pragma once

#include "plenum/kernels/optimizer_step.h"

namespace plenum::kernels::cuda {

void add_gradient_squares(const tensor::Stream& stream, const GradientSquares& args);
void decide_step(const tensor::Stream& stream, const StepDecision& args);
void adam_step(const tensor::Stream& stream, const AdamStep& args);
void lamb_step(const tensor::Stream& stream, const AdamStep& args);
void lamb_moments(const tensor::Stream& stream, const LambHalf& args);
void lamb_weights(const tensor::Stream& stream, const LambHalf& args);

using workspace::kSquaresBlock;
using workspace::num_square_blocks;

/// The sums of squares of weights and of their directions.
struct LambSquares {
  double weight, direction;
};
static_assert(sizeof(LambSquares) == workspace::kLambSquaresBytes);

}  // namespace plenum::kernels::cuda

#pragma once

#include "plenum/batch/work.h"
#include "plenum/describe/model_config.h"

namespace plenum::describe {

/// Multiplications and additions of a forward pass that the objectives need: of L layers T tokens need
/// T L (8 D^2 + 4 D F) + 4 L D sum(l^2), less what the last layer would do behind attention for tokens that
/// no head reads, (T - M - S)(2 D^2 + 4 D F); heads M (2 D^2 + 2 D V), and S (2 D^2 + 4 D) with a
/// next-sentence head, without which S does not count.
double forward_flops(const ModelConfig& config, const batch::Work& work);

/// Of a training step's forward and backward: three times the forward. What is recomputed does not count.
double training_flops(const ModelConfig& config, const batch::Work& work);

}  // namespace plenum::describe

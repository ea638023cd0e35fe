#pragma once

#include <string>

#include "plenum/train/evaluation.h"
#include "plenum/train/training_state.h"

namespace plenum::train {

/// Counts an evaluation after the state's step, and keeps it if it is the best so far: the highest of the
/// scores called `metric`, of equal ones that of the lower loss; or the lowest loss where that is empty or
/// kLossMetric. What is not finite is never
/// the best.
void count_evaluation(const Evaluation& evaluation, const std::string& metric, TrainingState& state);

/// What an evaluation was found the best for, such as "dev accuracy (0.8012)" or "held-out loss (3.2100)";
/// for a state that has a best one.
std::string best_text(const TrainingState& state);

}  // namespace plenum::train

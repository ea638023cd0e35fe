#pragma once

#include <string>
#include <vector>

#include "plenum/train/run_options.h"
#include "plenum/train/run_plan.h"
#include "plenum/train/training_state.h"

namespace plenum::train {

/// A line for each thing that a run would do and whoever started it hardly means, with the numbers and the
/// option to change: what is no error, but would otherwise happen in silence. `state` is where it stands
/// before its next step.
std::vector<std::string> warnings_of(const RunOptions& options, const RunPlan& plan,
                                     const TrainingState& state);

}  // namespace plenum::train

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plenum/packing/histogram.h"
#include "plenum/train/run_options.h"
#include "plenum/train/run_plan.h"
#include "plenum/train/training_state.h"

namespace plenum::train {

/// A line for each thing that a run would do and whoever started it hardly means, with the numbers and the
/// option to change: what is no error, but would otherwise happen in silence. `state` is where it stands
/// before its next step.
std::vector<std::string> warnings_of(const RunOptions& options, const RunPlan& plan,
                                     const TrainingState& state);

/// A line for masks that leave little of sequences so long to predict from; none for usual ones.
std::optional<std::string> mask_rate_warning(double rate, const packing::LengthHistogram& lengths);

}  // namespace plenum::train

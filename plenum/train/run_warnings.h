#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plenum/packing/histogram.h"
#include "plenum/train/processes.h"
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

/// About ranks that were given fewer cores than threads. Called by all processes; the first has the answer.
std::optional<std::string> core_warning(const Processes& processes, std::size_t num_threads,
                                        std::size_t num_cores);

}  // namespace plenum::train

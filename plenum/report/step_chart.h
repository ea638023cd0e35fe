#pragma once

#include <string>

#include "plenum/report/step_times.h"

namespace plenum::report {

/// A step's timeline: for each rank what was predicted above what was measured, from one beginning; messages
/// and collectives as strips below the computation. The page's script zooms.
std::string step_timeline_html(const StepTimes& times);

/// How much of the measured step each rank spent on what, idle time among it.
std::string rank_shares_html(const StepTimes& times);

/// Where the time of the predicted step goes, by what limits it.
std::string breakdown_html(const StepTimes& times);

/// Predicted beside measured seconds by kind of work, over all ranks, as a table.
std::string prediction_table_html(const StepTimes& times);

}  // namespace plenum::report

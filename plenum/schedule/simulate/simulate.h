#pragma once

#include <vector>

#include "plenum/schedule/simulate/critical_path.h"
#include "plenum/schedule/simulate/replay.h"

namespace plenum::schedule {

/// What a schedule costs in its steady state.
struct Simulation {
  ReplayResult replay = {};
  double step_seconds = 0;                  ///< mean over the cycle
  double utilization = 0;                   ///< busy compute time over all ranks / their time; 0 if that is 0
  std::vector<double> bubble_seconds = {};  ///< idle compute time of each rank in a step, mean over the cycle
  std::vector<CriticalAction> critical_path = {};  ///< first to last
};

/// Replays the schedule and reads off what it costs. Throws UserError if it does not run to its end.
Simulation simulate(const Schedule& schedule, const CostModel& costs);

}  // namespace plenum::schedule

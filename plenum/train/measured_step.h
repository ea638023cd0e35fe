#pragma once

#include <cstddef>
#include <vector>

#include "plenum/schedule/simulate/replay.h"

namespace plenum::train {

/// When the actions of a step ran.
struct MeasuredStep {
  std::vector<schedule::RankTimes> times;  ///< of every rank of the schedule, from the step's first action on
  std::size_t cycle_step = 0;              ///< which step of the schedule it is; the others have no times
  std::vector<bool> is_empty;              ///< of each micro-batch
  double waited_seconds = 0;               ///< of the first process for the step's data, before
};

}  // namespace plenum::train

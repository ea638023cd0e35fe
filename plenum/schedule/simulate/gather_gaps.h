#pragma once

#include <vector>

#include "plenum/schedule/simulate/replay.h"

namespace plenum::schedule {

/// Delays computations that nothing waits for until they end where the next one begins, so that idle time
/// lies in few long gaps instead of many short ones. Takes and gives the times of a one-step schedule whose
/// step repeats every `step_seconds`; no lane changes its order and the step does not get longer. Ties with a
/// step before are kept where the step itself makes the value.
std::vector<RankTimes> gather_gaps(const Dataflow& dataflow, const std::vector<RankTimes>& times,
                                   double step_seconds);

}  // namespace plenum::schedule

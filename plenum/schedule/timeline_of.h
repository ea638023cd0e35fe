#pragma once

#include <string>
#include <vector>

#include "plenum/schedule/replay.h"
#include "plenum/trace/timeline.h"

namespace plenum::schedule {

/// The timeline of one cycle, from the times of its actions: simulated (ReplayResult::times) or measured by
/// the executor. Both have the same spans in the same order, so one can be laid over the other.
trace::Timeline timeline_of(const Schedule& schedule, const std::vector<RankTimes>& times, std::string title);

}  // namespace plenum::schedule

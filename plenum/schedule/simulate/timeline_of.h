#pragma once

#include <string>
#include <vector>

#include "plenum/schedule/simulate/replay.h"
#include "plenum/trace/timeline.h"

namespace plenum::schedule {

/// What an action is drawn as.
trace::Category category_of(ActionType type);

/// The timeline of one cycle, from the times of its actions: simulated (ReplayResult::times) or measured by
/// the executor. Both have the same spans in the same order, so one can be laid over the other: a track for
/// every rank and lane that has actions, in that order, and on it the actions in theirs (messages on two:
/// what goes out, which the lane does not wait for, and what comes in), labelled as action_text() writes
/// them. Flows lead from every send to its receive. Times stay as they are; the timeline begins with its
/// first computation and ends with its last action.
trace::Timeline timeline_of(const Schedule& schedule, const std::vector<RankTimes>& times, std::string title);

}  // namespace plenum::schedule

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plenum/schedule/simulate/replay.h"
#include "plenum/trace/timeline.h"

namespace plenum::schedule {

/// What an action is drawn as.
trace::Category category_of(ActionType type);

/// How the actions of a timeline are labelled: as action_text() or as action_words() writes them. The other
/// is the label's explanation.
enum class ActionLabels : std::uint8_t { Codes, Words };

/// The timeline of one cycle, from the times of its actions: simulated (ReplayResult::times) or measured by
/// the executor. Both have the same spans in the same order, so one can be laid over the other: a track for
/// every rank and lane that has actions, in that order, and on it the actions in theirs (messages on two:
/// what goes out, which the lane does not wait for, and what comes in). Flows lead from every send to its
/// receive. Times stay as they are; the timeline begins with its first computation and ends with its last
/// action.
trace::Timeline timeline_of(const Schedule& schedule, const std::vector<RankTimes>& times, std::string title,
                            ActionLabels labels = ActionLabels::Codes);

}  // namespace plenum::schedule

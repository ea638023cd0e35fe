#pragma once

#include <array>
#include <optional>
#include <vector>

#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/simulate/cost_model.h"

namespace plenum::schedule {

/// When an action ran, in seconds from the start of the replay.
struct ActionTime {
  double start = 0;
  double end = 0;
};

/// The times of a lane's actions, in the order of LaneProgram::actions().
using LaneTimes = std::vector<ActionTime>;
using RankTimes = std::array<LaneTimes, kNumLanes>;

/// An action that never ran, and what it waited for.
struct BlockedAction {
  Rank rank;
  Lane lane;
  std::size_t position = 0;  ///< in LaneProgram::actions()
  std::size_t step = 0;      ///< counted from the start of the replay
  /// The value it lacks on its own rank; nothing if it waits for another rank or lane.
  std::optional<ValueRef> missing;
};

struct ReplayResult {
  std::vector<RankTimes> times;  ///< of the last cycle
  double begin = 0;              ///< when the cycle before the last one ended on the last rank to end it
  double end = 0;                ///< when the last one did
  std::vector<BlockedAction>
      blocked;  ///< the head of every lane that did not come to its end; empty if all did
};

/// Cycles after which every value that is read belongs to a step inside the replay, and one more. What holds
/// for that one holds for all that follow: they read and make the same things, a cycle later.
std::size_t num_cycles_to_steady_state(const Dataflow& dataflow);

/// Runs a schedule for `num_cycles` cycles from an idle machine: every lane in order, each action as soon as
/// its inputs exist, its lane is free, its message has arrived, its group is complete, and no lane of the
/// rank is two steps behind. A send does not wait for its receiver,
/// nor its lane for the message to leave; messages of a lane leave one after another. A
/// receive lasts while its message is on its way: from the end of the send, or later where its lane was not
/// free, to the arrival. Cost linear in actions and their inputs.
ReplayResult replay(const Schedule& schedule, const Dataflow& dataflow, const CostModel& costs,
                    std::size_t num_cycles);

}  // namespace plenum::schedule

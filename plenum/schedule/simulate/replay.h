#pragma once

#include <array>
#include <cstdint>
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

/// Whether messages keep to the order of their lanes.
enum class MessageOrder : std::uint8_t {
  OfLanes,
  /// Pipeline lanes stay empty: every message is sent when what it carries is made, beside all others. No
  /// order of these lanes lets anything run earlier. Every message that could be sent counts, also one that
  /// the schedule does not send.
  Free,
};

/// Runs a schedule for `num_cycles` cycles from an idle machine: every lane in order, each action as soon as
/// its inputs exist, its lane is free, its group is complete, and no lane of the rank is two steps behind. A
/// message is the meeting of two lanes: it starts when the send and the receive are each the next action of
/// their lane, and both lanes are busy until it has arrived, its own time and the latency later. That is what
/// an engine does that has no buffers and delivers in order. Cost linear in actions and their inputs.
ReplayResult replay(const Schedule& schedule, const Dataflow& dataflow, const CostModel& costs,
                    std::size_t num_cycles, MessageOrder message_order = MessageOrder::OfLanes);

}  // namespace plenum::schedule

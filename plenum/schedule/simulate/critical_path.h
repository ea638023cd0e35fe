#pragma once

#include <cstddef>
#include <vector>

#include "plenum/schedule/simulate/replay.h"

namespace plenum::schedule {

/// One action of the chain that determines the length of the cycle.
struct CriticalAction {
  Rank rank;
  Lane lane;
  std::size_t position = 0;  ///< in LaneProgram::actions()

  friend bool operator==(const CriticalAction&, const CriticalAction&) = default;
};

/// The chain of actions, first to last, that ends with the last action to end in the replay's last cycle,
/// each of which began when the one before it ended: the one before it in its lane, the maker of an input, or
/// what the last rank to come to a message or collective waited for. It begins with the action that waited
/// for the cycle before. The replay must have run to its end; `dataflow` must be the one it used. Looks only
/// at ranks that the chain, its messages or its collectives touch.
std::vector<CriticalAction> critical_path(const Schedule& schedule, const Dataflow& dataflow,
                                          const ReplayResult& replay);

}  // namespace plenum::schedule

#pragma once

#include <optional>
#include <vector>

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// A message or collective by its place in a rank's lanes.
struct IssuedAction {
  Lane lane = Lane::Pipeline;
  std::size_t position = 0;  ///< in LaneProgram::actions()
};

/// For each rank, the messages and collectives of all its lanes over the cycle in one order, which keeps the
/// order of every lane and its steps. A rank may issue them from one thread that waits for each to end before
/// it issues the next: no circle of waiting is possible, since all ranks follow one order of all messages and
/// collectives in which each comes after what it needs. Nothing if the schedule does not run.
std::optional<std::vector<std::vector<IssuedAction>>> issue_order(const Schedule& schedule);

}  // namespace plenum::schedule

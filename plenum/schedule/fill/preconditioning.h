#pragma once

#include <vector>

#include "plenum/schedule/core/dataflow.h"

namespace plenum::schedule {

/// Appends the preconditioning of every layer that a rank holds, and the gathering of its parts where a stage
/// has several holders, layer by layer so that one overlaps with the other.
void add_preconditioning(const Dataflow& dataflow, Rank rank, std::vector<Action>& actions);

/// An action of a type that works on one layer.
Action layer_action(ActionType type, StageId stage, LayerId layer, std::uint16_t factor = 0);

/// Calls `visit(stage, layer, factor)` for every linear map of the layers that a rank holds.
template <typename Visit>
void for_each_map(const Dataflow& dataflow, Rank rank, Visit visit) {
  const Schedule& schedule = dataflow.schedule();
  for (const StageId stage : schedule.ranks[rank.index()].stages) {
    for (LayerId layer = dataflow.layers().first(stage); layer < dataflow.layers().end(stage);
         ++layer.value) {
      for (std::uint16_t factor = 0; factor < schedule.problem.num_factors; ++factor) {
        visit(stage, layer, factor);
      }
    }
  }
}

}  // namespace plenum::schedule

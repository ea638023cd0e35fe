#include "plenum/schedule/fill/preconditioning.h"

namespace plenum::schedule {

Action layer_action(ActionType type, StageId stage, LayerId layer, std::uint16_t factor) {
  return {.type = type,
          .stage = stage,
          .first_layer = layer,
          .end_layer = LayerId::at(layer.index() + 1),
          .factor = factor};
}

void add_preconditioning(const Dataflow& dataflow, Rank rank, std::vector<Action>& actions) {
  for (const StageId stage : dataflow.schedule().ranks[rank.index()].stages) {
    for (LayerId layer = dataflow.layers().first(stage); layer < dataflow.layers().end(stage);
         ++layer.value) {
      actions.push_back(layer_action(ActionType::Precondition, stage, layer));
      if (dataflow.holders(stage).size() > 1) {
        actions.push_back(layer_action(ActionType::GatherPreconditioned, stage, layer));
      }
    }
  }
}

}  // namespace plenum::schedule

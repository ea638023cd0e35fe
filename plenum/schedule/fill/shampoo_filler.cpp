#include "plenum/schedule/fill/shampoo_filler.h"

#include <limits>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/schedule/fill/preconditioning.h"

namespace plenum::schedule {

ShampooFiller::ShampooFiller(std::vector<MapBytes> maps, std::size_t max_pieces)
    : maps_(std::move(maps)), max_pieces_(max_pieces) {
  base::require(!maps_.empty() && maps_.size() <= std::numeric_limits<std::uint16_t>::max(),
                "Shampoo needs at least one linear map in a layer: {}", maps_.size());
}

void ShampooFiller::change(Problem& problem) const {
  problem.preconditioner = Preconditioner::Shampoo;
  problem.num_factors = static_cast<std::uint16_t>(maps_.size());
}

void ShampooFiller::add_step_actions(const Dataflow& dataflow, Rank rank,
                                     std::vector<Action>& actions) const {
  // First: a root of this step's factor may be what its gradients are preconditioned with.
  for (const StageId stage : dataflow.schedule().ranks[rank.index()].stages) {
    actions.push_back(dataflow.layers().whole(ActionType::AccumulateFactor, stage));
  }
  add_preconditioning(dataflow, rank, actions);
}

void ShampooFiller::add_refresh(const Dataflow& dataflow, Rank rank, std::vector<WorkItem>& items) const {
  for_each_map(dataflow, rank, [&](StageId stage, LayerId layer, std::uint16_t factor) {
    if (dataflow.owner(stage, layer, factor) != rank) return;
    items.push_back({.action = layer_action(ActionType::InverseRoot, stage, layer, factor),
                     .kept_bytes = maps_[factor].factor_bytes,
                     .max_pieces = max_pieces_});
  });
}

}  // namespace plenum::schedule

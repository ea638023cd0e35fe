#include "plenum/schedule/shampoo_filler.h"

#include <limits>

#include "plenum/base/check.h"
#include "plenum/schedule/preconditioning.h"

namespace plenum::schedule {

ShampooFiller::ShampooFiller(std::size_t num_factors, std::size_t max_pieces)
    : num_factors_(static_cast<std::uint16_t>(num_factors)), max_pieces_(max_pieces) {
  base::require(num_factors > 0 && num_factors <= std::numeric_limits<std::uint16_t>::max(),
                "Shampoo needs at least one linear map in a layer: {}", num_factors);
}

void ShampooFiller::change(Problem& problem) const {
  problem.preconditioner = Preconditioner::Shampoo;
  problem.num_factors = num_factors_;
}

void ShampooFiller::add_step_actions(const Dataflow& dataflow, Rank rank,
                                     std::vector<Action>& actions) const {
  add_preconditioning(dataflow, rank, actions);
  // Last: nothing of this step waits for it, so it hides behind the gathering and the agreement.
  for (const StageId stage : dataflow.schedule().ranks[rank.index()].stages) {
    actions.push_back(dataflow.layers().whole(ActionType::AccumulateFactor, stage));
  }
}

void ShampooFiller::add_refresh(const Dataflow& dataflow, Rank rank, std::vector<WorkItem>& items) const {
  for_each_map(dataflow, rank, [&](StageId stage, LayerId layer, std::uint16_t factor) {
    if (dataflow.owner(stage, layer, factor) != rank) return;
    items.push_back(
        {.action = layer_action(ActionType::InverseRoot, stage, layer, factor), .max_pieces = max_pieces_});
  });
}

}  // namespace plenum::schedule

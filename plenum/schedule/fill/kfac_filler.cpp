#include "plenum/schedule/fill/kfac_filler.h"

#include <limits>
#include <numeric>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/schedule/fill/preconditioning.h"

namespace plenum::schedule {

KfacFiller::KfacFiller(std::vector<MapBytes> maps, std::size_t max_pieces)
    : maps_(std::move(maps)), max_pieces_(max_pieces) {
  base::require(!maps_.empty() && maps_.size() <= std::numeric_limits<std::uint16_t>::max(),
                "K-FAC needs at least one linear map in a layer: {}", maps_.size());
}

void KfacFiller::change(Problem& problem) const {
  problem.preconditioner = Preconditioner::Kfac;
  problem.num_factors = static_cast<std::uint16_t>(maps_.size());
}

void KfacFiller::add_step_actions(const Dataflow& dataflow, Rank rank, std::vector<Action>& actions) const {
  add_preconditioning(dataflow, rank, actions);
}

void KfacFiller::add_statistics(const Dataflow& dataflow, Rank rank, const Action& map,
                                std::vector<WorkItem>& items) const {
  const Problem& problem = dataflow.schedule().problem;
  const std::vector<std::uint32_t>& sizes = problem.micro_batch_sizes;
  const double total_size = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  for (std::uint32_t m = 0; m < problem.num_micro_batches; ++m) {
    if (dataflow.runner(map.stage, {m}) != rank) continue;
    const double scale = total_size > 0 ? sizes[m] * problem.num_micro_batches / total_size : 1;
    Action action = map;
    action.micro_batch = {m};
    action.type = ActionType::CurvatureA;
    items.push_back({.action = action, .kept_bytes = maps_[map.factor].input_bytes * scale});
    action.type = ActionType::CurvatureB;
    items.push_back({.action = action, .kept_bytes = maps_[map.factor].output_gradient_bytes * scale});
  }
}

void KfacFiller::add_refresh(const Dataflow& dataflow, Rank rank, std::vector<WorkItem>& items) const {
  for_each_map(dataflow, rank, [&](StageId stage, LayerId layer, std::uint16_t factor) {
    const Action invert = layer_action(ActionType::Invert, stage, layer, factor);
    add_statistics(dataflow, rank, invert, items);
    const double factor_bytes = maps_[factor].factor_bytes;
    if (dataflow.holders(stage).size() > 1) {
      items.push_back({.action = layer_action(ActionType::ReduceCurvature, stage, layer, factor),
                       .kept_bytes = factor_bytes});
    }
    if (dataflow.owner(stage, layer, factor) == rank) {
      items.push_back({.action = invert, .kept_bytes = factor_bytes, .max_pieces = max_pieces_});
    }
  });
}

}  // namespace plenum::schedule

#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "plenum/schedule/core/schedule.h"
#include "plenum/schedule/simulate/cost_model.h"

namespace plenum::schedule {

/// What actions take as a rule, in layers of a forward: for orders that must be found before anything is
/// measured. Everything takes some time, so that what leads to something else comes before it.
class UsualCosts final : public CostModel {
 public:
  /// Borrows the problem.
  explicit UsualCosts(const Problem& problem) : sizes_(problem.micro_batch_sizes) {
    mean_size_ = std::accumulate(sizes_.begin(), sizes_.end(), 1.0) / static_cast<double>(sizes_.size() + 1);
  }

  double seconds(Rank, const Action& action) const override {
    const double layers = action.end_layer.value - action.first_layer.value;
    switch (action.type) {
      case ActionType::Forward:
      case ActionType::InputGradient:
      case ActionType::WeightGradient:
      case ActionType::Recompute:
        return layers * scale(action.micro_batch);
      case ActionType::Backward:
        return 2 * layers * scale(action.micro_batch);
      default:
        return 0.001;
    }
  }
  double latency_seconds(Rank, Rank) const override { return 0.05; }

 private:
  double scale(MicroBatchId micro_batch) const {
    return sizes_.empty() ? 1 : std::max<double>(sizes_[micro_batch.index()], 1) / mean_size_;
  }

  const std::vector<std::uint32_t>& sizes_;
  double mean_size_ = 1;
};

}  // namespace plenum::schedule

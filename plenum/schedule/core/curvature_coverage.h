#pragma once

#include <span>
#include <vector>

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// Which micro-batches the statistics of K-FAC cover, over all ranks: of every linear map, for its A and for
/// its B. All of them, or where curvature is partial those of which the schedule has an action.
class CurvatureCoverage {
 public:
  explicit CurvatureCoverage(const Schedule& schedule);

  /// Ascending. `side` is CurvatureA or CurvatureB, `map` counts within the layer.
  std::span<const MicroBatchId> of(ActionType side, LayerId layer, std::size_t map) const;

 private:
  std::size_t index(ActionType side, LayerId layer, std::size_t map) const {
    return 2 * (layer.index() * num_factors_ + map) + (side == ActionType::CurvatureB ? 1 : 0);
  }

  std::size_t num_factors_;
  std::vector<MicroBatchId> all_;                   ///< where it is not partial
  std::vector<std::vector<MicroBatchId>> covered_;  ///< where it is
};

}  // namespace plenum::schedule

#include "plenum/schedule/core/curvature_coverage.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::schedule {

CurvatureCoverage::CurvatureCoverage(const Schedule& schedule) : num_factors_(schedule.problem.num_factors) {
  if (!schedule.problem.has_partial_curvature) {
    for (std::size_t m = 0; m < schedule.problem.num_micro_batches; ++m) all_.push_back(MicroBatchId::at(m));
    return;
  }
  covered_.resize(2 * StageLayers(schedule.problem).total() * num_factors_);
  for (const RankProgram& rank : schedule.ranks) {
    for (const Action& action : rank.lane(Lane::Compute).actions()) {
      if (!is_curvature(action.type)) continue;
      covered_[index(action.type, action.first_layer, action.factor)].push_back(action.micro_batch);
    }
  }
  for (std::vector<MicroBatchId>& covered : covered_) {
    std::sort(covered.begin(), covered.end());
    covered.erase(std::unique(covered.begin(), covered.end()), covered.end());
  }
}

std::span<const MicroBatchId> CurvatureCoverage::of(ActionType side, LayerId layer, std::size_t map) const {
  base::check(is_curvature(side), "only statistics cover micro-batches: {}", traits_of(side).name);
  if (covered_.empty()) return all_;
  return covered_[index(side, layer, map)];
}

}  // namespace plenum::schedule

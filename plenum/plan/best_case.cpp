#include "plenum/plan/best_case.h"

#include <algorithm>

namespace plenum::plan {

Cluster at_best(Cluster cluster) {
  for (std::size_t i = 0; i < kNumOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    double best = 0;
    for (const EfficiencyPoint& point : cluster.device.points(kind)) best = std::max(best, point.efficiency);
    if (best == 0) continue;
    cluster.device.set_points(kind, {});
    cluster.device.set_default_efficiency(kind, best);
  }
  return cluster;
}

}  // namespace plenum::plan

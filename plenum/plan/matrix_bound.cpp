#include "plenum/plan/matrix_bound.h"

#include "plenum/plan/action_ops.h"
#include "plenum/plan/best_case.h"
#include "plenum/plan/matrix_ops.h"
#include "plenum/plan/pass_costs.h"
#include "plenum/tensor/dtype.h"
#include "plenum/tensor/precision.h"

namespace plenum::plan {
namespace {

using describe::FactorShape;
using schedule::Preconditioner;

/// Of single maps.
class MapSeconds {
 public:
  MapSeconds(const describe::ModelDescription& slice, const MatrixWork& work, const Cluster& cluster)
      : work_(work),
        cluster_(without_launches(cluster)),
        ops_(slice, cluster.kind, schedule::Recomputation::None),
        costs_(ops_, cluster_),
        weight_bytes_(static_cast<double>(
            tensor::size_of(tensor::precision_of(cluster.kind).of(tensor::Role::Weight)))) {}

  double kfac(const FactorShape& shape) const {
    const std::vector<FactorShape> one = {shape};
    return of(kfac_precondition_ops(one)) + refreshed(inversion_ops(one, cluster_.kind));
  }
  double direction(const FactorShape& shape) const {
    const std::vector<FactorShape> one = {shape};
    if (work_.kind == Preconditioner::Muon) return of(muon_direction_ops(one, weight_bytes_));
    return of(soap_factor_ops(one, work_.soap_limit)) + of(soap_direction_ops(one, work_.soap_limit)) +
           refreshed(soap_basis_ops(one, work_.soap_limit));
  }
  double weights(const FactorShape& shape) const {
    const std::vector<FactorShape> one = {shape};
    return of(matrix_weight_ops(one, weight_bytes_));
  }

 private:
  static Cluster without_launches(const Cluster& cluster) {
    Cluster best = at_best(cluster);
    best.device.launch_seconds = 0;
    return best;
  }
  double of(const std::vector<Op>& ops) const { return costs_.of(ops).total(); }
  /// In bubbles it may cost nothing.
  double refreshed(const std::vector<Op>& ops) const {
    return work_.fill == BubbleFill::Off ? of(ops) / static_cast<double>(work_.every) : 0;
  }

  const MatrixWork& work_;
  Cluster cluster_;
  ActionOps ops_;
  PartCosts costs_;
  double weight_bytes_;
};

}  // namespace

MatrixBound matrix_bound(const describe::ModelDescription& slice, const MatrixWork& work,
                         const Cluster& cluster) {
  MatrixBound bound;
  if (work.kind == Preconditioner::None) return bound;
  const MapSeconds seconds(slice, work, cluster);
  for (const FactorShape& shape : factor_shapes(slice.layers.front())) {
    if (work.kind == Preconditioner::Kfac) {
      bound.step_seconds.push_back(seconds.kfac(shape));
      continue;
    }
    bound.elements += static_cast<double>(shape.in_width) * static_cast<double>(shape.out_width);
    bound.weight_seconds += seconds.weights(shape);
    bound.update_seconds.push_back(seconds.direction(shape));
  }
  return bound;
}

}  // namespace plenum::plan

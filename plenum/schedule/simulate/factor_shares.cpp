#include "plenum/schedule/simulate/factor_shares.h"

namespace plenum::schedule {

FactorShares::FactorShares(std::span<const LinearMap> maps) {
  double curvature = 0;
  double inversion = 0;
  double precondition = 0;
  for (const LinearMap& map : maps) {
    const double in = map.in_width;
    const double out = map.out_width;
    const Shares& shares = maps_.emplace_back(Shares{.curvature_a = in * in,
                                                     .curvature_b = out * out,
                                                     .inversion = in * in * in + out * out * out,
                                                     .precondition = in * out * (in + out)});
    curvature += shares.curvature_a + shares.curvature_b;
    inversion += shares.inversion;
    precondition += shares.precondition;
  }
  for (Shares& shares : maps_) {
    shares.curvature_a /= curvature;
    shares.curvature_b /= curvature;
    shares.inversion /= inversion;
    shares.precondition /= precondition;
  }
}

}  // namespace plenum::schedule

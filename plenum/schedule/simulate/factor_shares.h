#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plenum/base/check.h"

namespace plenum::schedule {

/// A linear map of a layer; widths in any unit, the same for all maps.
struct LinearMap {
  double in_width = 1;
  double out_width = 1;
};

/// How the second-order work of a layer divides over its linear maps, by the leading term of the arithmetic:
/// curvature is a product over tokens (A: in^2, B: out^2), inversion is cubic (in^3 + out^3), preconditioning
/// multiplies the gradient from both sides (in * out * (in + out)). Each kind of share sums to 1 over the
/// layer; for curvature, A and B together do.
class FactorShares {
 public:
  explicit FactorShares(std::span<const LinearMap> maps);

  std::size_t num_maps() const { return maps_.size(); }
  double curvature_a(std::size_t map) const { return of(map).curvature_a; }
  double curvature_b(std::size_t map) const { return of(map).curvature_b; }
  double inversion(std::size_t map) const { return of(map).inversion; }
  double precondition(std::size_t map) const { return of(map).precondition; }
  /// Of the memory of all factors, in^2 + out^2.
  double factor_size(std::size_t map) const { return of(map).curvature_a + of(map).curvature_b; }

 private:
  struct Shares {
    double curvature_a = 0;
    double curvature_b = 0;
    double inversion = 0;
    double precondition = 0;
  };
  const Shares& of(std::size_t map) const {
    base::check(map < maps_.size(), "second-order work is of a map that the layer has not: {} of {}", map,
                maps_.size());
    return maps_[map];
  }

  std::vector<Shares> maps_;
};

}  // namespace plenum::schedule

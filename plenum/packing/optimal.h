#pragma once

#include "plenum/packing/bounds.h"
#include "plenum/packing/plan.h"

namespace plenum::packing {

struct OptimalOptions {
  /// When to stop improving. The bound stays proven and the plan valid; the gap between them may be wider.
  double time_limit_seconds = 30;
};

struct OptimalResult {
  PackingPlan plan;
  LowerBound bound;
};

/// Packs into close to the fewest packs, and proves how close: column generation on the linear relaxation
/// (Gilmore and Gomory, 1961) with exact pricing, then rounding. Deterministic unless the time limit binds.
OptimalResult pack_optimal(const PackingProblem& problem, const OptimalOptions& options);

}  // namespace plenum::packing

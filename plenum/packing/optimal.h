#pragma once

#include "plenum/packing/bounds.h"
#include "plenum/packing/coarse_relaxation.h"
#include "plenum/packing/plan.h"

namespace plenum::packing {

struct OptimalOptions {
  /// When to stop improving. The bound stays proven and the plan valid; the gap between them may be wider.
  double time_limit_seconds = 30;
  /// With more lengths than this, a relaxation with prices at few of them comes first.
  std::int64_t few_lengths = 1000;
  CoarseOptions coarse = {};
};

struct OptimalResult {
  PackingPlan plan;
  LowerBound bound;
};

/// Packs into close to the fewest packs, and proves how close.
///
/// Greedy plans and combinatorial bounds come first; often they meet. Otherwise column generation solves the
/// linear relaxation (Gilmore and Gomory, 1961) with exact pricing, and rounding makes whole packs of it.
/// With thousands of lengths that would take too long, so there a relaxation with prices at few lengths,
/// linear in between, gives a bound and a plan within seconds (see relax_coarsely and round_in_layers) before
/// the exact one takes the rest of the time. Every bound is checked in exact integer arithmetic.
/// Deterministic unless the time limit binds.
OptimalResult pack_optimal(const PackingProblem& problem, const OptimalOptions& options);

}  // namespace plenum::packing

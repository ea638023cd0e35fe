#pragma once

#include <cstdint>
#include <limits>

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
  /// How often the search for a better plan takes a turn, each twice as long as the one before.
  std::int64_t search_turns = std::numeric_limits<std::int64_t>::max();
};

struct OptimalResult {
  PackingPlan plan;
  LowerBound bound;
};

/// Packs into the fewest packs that can be found in the time limit, and proves how close to the fewest they
/// are. Stops when the gap is closed or the time is up.
///
/// Greedy plans and combinatorial bounds come first; often they meet. Otherwise column generation solves the
/// linear relaxation (Gilmore and Gomory, 1961) with exact pricing, and rounding makes whole packs of it.
/// With thousands of lengths that would take too long, so there a relaxation with prices at few lengths,
/// linear in between, gives a bound and a plan within seconds (see relax_coarsely and round_in_layers) before
/// the exact one takes the rest of the time. If a gap remains, parts of the plan are packed anew (Repacking)
/// and, with at most a thousand packs, every plan is tried (search_plan), in turns that become longer. Now
/// and then the fewest packs are one more than the linear program proves; where packs are few the search
/// proves that, too. Every bound is checked in exact integer arithmetic. Turns are measured in work, not in
/// time: the result depends on speed only if the time limit ends it.
OptimalResult pack_optimal(const PackingProblem& problem, const OptimalOptions& options);

}  // namespace plenum::packing

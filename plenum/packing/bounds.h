#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plenum/packing/plan.h"

namespace plenum::packing {

/// No plan has fewer packs, and what proves it.
struct LowerBound {
  std::uint64_t packs = 0;
  std::string proof;  ///< "volume", "L2", "depth", "LP dual" or "search"
};

/// A weight for every length, in units of 1 / denominator. If no pattern weighs more than one, the total
/// weight of all sequences is a lower bound: every pack carries at most one.
struct DualWeights {
  std::vector<std::uint64_t> weight_of_length;  ///< index is the length; lengths beyond the end weigh nothing
  std::uint64_t denominator = 0;
};

/// The greatest denominator for which `dual_bound` cannot overflow at this capacity.
std::uint64_t greatest_dual_denominator(std::int64_t capacity);

/// ceil(tokens / capacity).
LowerBound volume_bound(const PackingProblem& problem);

/// Martello and Toth's L2 (Lower bounds and reduction procedures for the bin packing problem, 1990) in
/// O(capacity): for every threshold, sequences above half a pack cannot share one, and those between
/// threshold and half must fill what the larger ones leave.
LowerBound l2_bound(const PackingProblem& problem);

/// ceil(sequences / depth).
LowerBound depth_bound(const PackingProblem& problem);

/// The greatest of the three above; the simplest proof of equals.
LowerBound combinatorial_bound(const PackingProblem& problem);

/// Duals by length, rounded down to weights.
DualWeights weights_of_duals(const std::vector<double>& duals, std::int64_t capacity);

/// The same weights if no pattern weighs more than one, otherwise scaled down until none does (Farley, 1990):
/// the heaviest is found by an exact knapsack in integers. One for every length up to the capacity.
DualWeights feasible_weights(const PackingProblem& problem, const DualWeights& weights);

/// ceil(sum of counts * weights), after making sure in exact integer arithmetic (a knapsack over all patterns
/// of at most `depth` lengths) that no pattern weighs more than one. Weights that break this are scaled down
/// until they do not, so the result is a valid bound whatever they are (Farley, 1990).
LowerBound dual_bound(const PackingProblem& problem, const DualWeights& weights);

}  // namespace plenum::packing

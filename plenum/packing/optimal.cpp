#include "plenum/packing/optimal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "plenum/packing/column_generation.h"
#include "plenum/packing/layered_rounding.h"
#include "plenum/packing/mixed_fit.h"
#include "plenum/packing/price_nodes.h"
#include "plenum/packing/rounding.h"

namespace plenum::packing {

namespace {

/// Greedy plans with up to this many short sequences set beside the longest.
constexpr std::int64_t kMaxShort = 8;
/// The shares of the time limit after which the relaxation is done, and its rounding, and then the layers.
struct Schedule {
  double relaxation;
  double rounding;
  double layers;
};
constexpr Schedule kFewLengths{.relaxation = 0.75, .rounding = 1, .layers = 1};
/// The exact relaxation gets long enough to see whether it converges.
constexpr Schedule kManyLengths{.relaxation = 0.4, .rounding = 0.5, .layers = 0.85};
/// Layers of different thickness make different plans, the first usually the best.
constexpr std::array<double, 2> kLayerShares[] = {{0.95, 0.7}, {0.85, 0.5}, {0.95, 0.95}, {0.8, 0.3}};
/// Beyond this, pricing once takes seconds and no relaxation would get far: greedy plans must do.
constexpr std::int64_t kMaxCapacity = std::int64_t{1} << 15;
/// Beyond this, the one with a price for every length would not.
constexpr std::int64_t kMaxCapacityTimesLengths = std::int64_t{1} << 28;

DualWeights weights_of(const std::vector<double>& duals, std::int64_t capacity) {
  DualWeights weights{.weight_of_length = {}, .denominator = greatest_dual_denominator(capacity)};
  for (const double dual : duals) {
    weights.weight_of_length.push_back(
        static_cast<std::uint64_t>(std::floor(dual * static_cast<double>(weights.denominator))));
  }
  return weights;
}

/// Ways to make different plans of one relaxation, the quickest first; it is nearly always enough. The later
/// ones solve the relaxation of what remains to the end, not just to the lower bound.
std::vector<RoundingOptions> rounding_attempts(std::uint64_t lower_bound) {
  std::vector<RoundingOptions> attempts;
  for (const std::uint64_t good_enough : {lower_bound, std::uint64_t{0}}) {
    for (const double threshold : {0.6, 0.8, 0.5, 0.99}) {
      attempts.push_back({.threshold = threshold, .good_enough_packs = good_enough});
    }
  }
  return attempts;
}

/// Keeps the plan with fewer packs.
void keep_better(PackingPlan& best, PackingPlan other) {
  if (best.patterns.empty() || other.num_packs() < best.num_packs()) best = std::move(other);
}

}  // namespace

OptimalResult pack_optimal(const PackingProblem& problem, const OptimalOptions& options) {
  check_problem(problem);
  const auto num_lengths = static_cast<std::int64_t>(lengths_that_occur(problem.histogram).size());
  const bool many_lengths = num_lengths > options.few_lengths;
  const Schedule& schedule = many_lengths ? kManyLengths : kFewLengths;
  const Deadline deadline(options.time_limit_seconds);
  const Deadline relaxation_deadline(options.time_limit_seconds * schedule.relaxation);
  const Deadline rounding_deadline(options.time_limit_seconds * schedule.rounding);
  const Deadline layers_deadline(options.time_limit_seconds * schedule.layers);
  OptimalResult result{.plan = {}, .bound = combinatorial_bound(problem)};
  const auto proven = [&] { return result.plan.num_packs() == result.bound.packs; };

  std::vector<std::vector<std::int32_t>> known;
  const std::int64_t max_short = std::clamp<std::int64_t>(problem.depth - 2, 0, kMaxShort);
  for (std::int64_t num_short = 0; num_short <= max_short; ++num_short) {
    PackingPlan plan{.capacity = problem.capacity, .depth = problem.depth, .patterns = {}};
    append_mixed_fit(problem.histogram.counts, num_short, plan);
    for (const PackPattern& pattern : plan.patterns) known.push_back(pattern.lengths);
    keep_better(result.plan, std::move(plan));
    if (proven() || deadline.passed()) break;
  }

  if (!proven() && problem.capacity <= kMaxCapacity) {
    const auto raise_bound = [&](const Relaxation& relaxation) {
      const LowerBound bound = dual_bound(problem, weights_of(relaxation.duals, problem.capacity));
      if (bound.packs > result.bound.packs) result.bound = bound;
    };
    Relaxation coarse;
    if (many_lengths) {
      coarse = relax_coarsely(problem, {}, options.coarse, relaxation_deadline);
      raise_bound(coarse);
    }
    if (problem.capacity * num_lengths <= kMaxCapacityTimesLengths) {
      const RelaxationOptions fine{.good_enough = static_cast<double>(result.bound.packs),
                                   .duals = coarse.duals};
      for (const FractionalPattern& pattern : coarse.patterns) known.push_back(pattern.lengths);
      const Relaxation relaxation = relax(problem, known, fine, relaxation_deadline);
      raise_bound(relaxation);
      for (const RoundingOptions& attempt : rounding_attempts(result.bound.packs)) {
        if (proven()) break;
        keep_better(result.plan, round_relaxation(problem, relaxation, attempt, rounding_deadline));
        if (rounding_deadline.passed()) break;
      }
    }
    for (const std::array<double, 2>& shares : kLayerShares) {
      if (!many_lengths || proven() || layers_deadline.passed()) break;
      const LayerOptions layers{
          .coarse = options.coarse, .shares = shares, .few_lengths = options.few_lengths};
      keep_better(result.plan, round_in_layers(problem, coarse, layers, layers_deadline, deadline));
    }
  }
  check_plan(result.plan, problem);
  return result;
}

}  // namespace plenum::packing

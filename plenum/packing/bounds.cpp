#include "plenum/packing/bounds.h"

#include <algorithm>
#include <cmath>

#include "plenum/base/check.h"
#include "plenum/packing/knapsack.h"

namespace plenum::packing {

namespace {

using Wide = unsigned __int128;

std::uint64_t divide_up(Wide numerator, Wide denominator) {
  return static_cast<std::uint64_t>((numerator + denominator - 1) / denominator);
}

/// counts[length], 0 beyond the end.
std::uint64_t count_of(const PackingProblem& problem, std::int64_t length) {
  const std::vector<std::uint64_t>& counts = problem.histogram.counts;
  return static_cast<std::size_t>(length) < counts.size() ? counts[static_cast<std::size_t>(length)] : 0;
}

}  // namespace

std::uint64_t greatest_dual_denominator(std::int64_t capacity) {
  // A pattern holds at most `capacity` sequences of weight at most the denominator; their sum stays in int64.
  constexpr std::uint64_t kGreatestSum = std::uint64_t{1} << 62;
  constexpr std::uint64_t kFineEnough = std::uint64_t{1} << 50;
  return std::clamp(kGreatestSum / static_cast<std::uint64_t>(capacity), std::uint64_t{1}, kFineEnough);
}

LowerBound volume_bound(const PackingProblem& problem) {
  return {divide_up(problem.histogram.num_tokens(), static_cast<Wide>(problem.capacity)), "volume"};
}

LowerBound depth_bound(const PackingProblem& problem) {
  return {divide_up(problem.histogram.num_sequences(), static_cast<Wide>(problem.depth)), "depth"};
}

LowerBound l2_bound(const PackingProblem& problem) {
  const std::int64_t capacity = problem.capacity;
  const std::int64_t half = capacity / 2;
  const std::int64_t longest = problem.histogram.longest();
  const std::int64_t first_threshold = std::min(half, longest);

  std::uint64_t num_over_half = 0;
  Wide free_tokens = 0;   // beside large sequences of at most capacity - threshold
  Wide small_tokens = 0;  // in sequences from threshold to half
  for (std::int64_t length = half + 1; length <= longest; ++length) {
    num_over_half += count_of(problem, length);
    if (length < capacity - first_threshold) {
      free_tokens += static_cast<Wide>(count_of(problem, length)) * static_cast<Wide>(capacity - length);
    }
  }
  // As the threshold falls, sequences of its length join the small ones, and large ones of length capacity -
  // threshold, beside which none of the small ones fitted before, offer their free tokens.
  std::uint64_t best = num_over_half;
  for (std::int64_t threshold = first_threshold; threshold >= 1; --threshold) {
    small_tokens += static_cast<Wide>(count_of(problem, threshold)) * static_cast<Wide>(threshold);
    const std::int64_t partner = capacity - threshold;
    if (partner > half) {
      free_tokens += static_cast<Wide>(count_of(problem, partner)) * static_cast<Wide>(threshold);
    }
    if (small_tokens > free_tokens) {
      best =
          std::max(best, num_over_half + divide_up(small_tokens - free_tokens, static_cast<Wide>(capacity)));
    }
  }
  return {best, "L2"};
}

LowerBound combinatorial_bound(const PackingProblem& problem) {
  LowerBound best = volume_bound(problem);
  for (const LowerBound& other : {l2_bound(problem), depth_bound(problem)}) {
    if (other.packs > best.packs) best = other;
  }
  return best;
}

DualWeights weights_of_duals(const std::vector<double>& duals, std::int64_t capacity) {
  DualWeights weights{.weight_of_length = {}, .denominator = greatest_dual_denominator(capacity)};
  for (const double dual : duals) {
    weights.weight_of_length.push_back(
        static_cast<std::uint64_t>(std::floor(dual * static_cast<double>(weights.denominator))));
  }
  return weights;
}

DualWeights feasible_weights(const PackingProblem& problem, const DualWeights& weights) {
  const std::uint64_t denominator = weights.denominator;
  base::check(denominator >= 1 && denominator <= greatest_dual_denominator(problem.capacity),
              "the denominator of dual weights is out of range: denominator={} capacity={}", denominator,
              problem.capacity);
  // A sequence alone is a pattern, so a weight above one is never valid.
  std::vector<std::int64_t> exact(static_cast<std::size_t>(problem.capacity) + 1);
  const std::size_t num_weights = std::min(exact.size(), weights.weight_of_length.size());
  for (std::size_t length = 1; length < num_weights; ++length) {
    exact[length] = static_cast<std::int64_t>(std::min(weights.weight_of_length[length], denominator));
  }
  const auto heaviest =
      static_cast<std::uint64_t>(PatternKnapsack<std::int64_t>(exact, problem.depth).best(problem.capacity));

  DualWeights feasible{.weight_of_length = {}, .denominator = denominator};
  for (const std::int64_t weight : exact) {
    const auto wide = static_cast<Wide>(weight);
    feasible.weight_of_length.push_back(
        static_cast<std::uint64_t>(heaviest > denominator ? wide * denominator / heaviest : wide));
  }
  return feasible;
}

LowerBound dual_bound(const PackingProblem& problem, const DualWeights& weights) {
  const DualWeights feasible = feasible_weights(problem, weights);
  Wide total = 0;
  for (std::size_t length = 1; length < feasible.weight_of_length.size(); ++length) {
    total += static_cast<Wide>(feasible.weight_of_length[length]) *
             count_of(problem, static_cast<std::int64_t>(length));
  }
  return {divide_up(total, weights.denominator), "LP dual"};
}

}  // namespace plenum::packing

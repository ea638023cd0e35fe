#include "plenum/packing/plan.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "plenum/base/check.h"

namespace plenum::packing {

std::uint64_t PackingPlan::num_packs() const {
  std::uint64_t packs = 0;
  for (const PackPattern& pattern : patterns) packs += pattern.count;
  return packs;
}

void check_problem(const PackingProblem& problem) {
  base::require(problem.capacity >= 1, "the capacity of a pack must be at least 1: {}", problem.capacity);
  base::require(problem.depth >= 1, "the depth of a pack must be at least 1: {}", problem.depth);
  const std::int64_t longest = problem.histogram.longest();
  base::require(longest >= 1, "there are no sequences to pack");
  base::require(longest <= problem.capacity, "a sequence is longer than a pack: length {} > capacity {}",
                longest, problem.capacity);
}

void check_plan(const PackingPlan& plan, const PackingProblem& problem) {
  std::vector<std::uint64_t> placed(problem.histogram.counts.size());
  for (const PackPattern& pattern : plan.patterns) {
    const std::int64_t total =
        std::accumulate(pattern.lengths.begin(), pattern.lengths.end(), std::int64_t{0});
    const auto num_sequences = static_cast<std::int64_t>(pattern.lengths.size());
    base::check(num_sequences >= 1 && pattern.count >= 1, "a pattern is empty: sequences={} count={}",
                num_sequences, pattern.count);
    base::check(total <= problem.capacity, "a pack is over its capacity: tokens={} capacity={}", total,
                problem.capacity);
    base::check(num_sequences <= problem.depth, "a pack is over its depth: sequences={} depth={}",
                num_sequences, problem.depth);
    base::check(std::is_sorted(pattern.lengths.begin(), pattern.lengths.end(), std::greater<>()),
                "the lengths of a pattern are not descending");
    for (const std::int32_t length : pattern.lengths) {
      base::check(length >= 1 && static_cast<std::size_t>(length) < placed.size(),
                  "a pattern holds a length that does not occur: length={}", length);
      placed[static_cast<std::size_t>(length)] += pattern.count;
    }
  }
  for (std::size_t length = 1; length < placed.size(); ++length) {
    base::check(placed[length] == problem.histogram.counts[length],
                "a plan must place every sequence once: length={} sequences={} placed={}", length,
                problem.histogram.counts[length], placed[length]);
  }
}

}  // namespace plenum::packing

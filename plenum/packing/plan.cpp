#include "plenum/packing/plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::packing {
namespace {

std::optional<std::string> find_pattern_fault(const PackPattern& pattern, const PackingProblem& problem) {
  if (pattern.lengths.empty() || pattern.count == 0) return "a pattern is empty";
  const std::int64_t total = std::accumulate(pattern.lengths.begin(), pattern.lengths.end(), std::int64_t{0});
  if (total > problem.capacity) {
    return fmt::format("a pack is over its capacity: {} tokens > {}", total, problem.capacity);
  }
  if (std::cmp_greater(pattern.lengths.size(), problem.depth)) {
    return fmt::format("a pack is over its depth: {} sequences > {}", pattern.lengths.size(), problem.depth);
  }
  if (!std::is_sorted(pattern.lengths.begin(), pattern.lengths.end(), std::greater<>())) {
    return "the lengths of a pattern are not descending";
  }
  for (const std::int32_t length : pattern.lengths) {
    if (length < 1 || std::cmp_greater_equal(length, problem.histogram.counts.size())) {
      return fmt::format("a pattern holds a length that does not occur: {}", length);
    }
  }
  return std::nullopt;
}

/// Whether there are at most kMostTokens tokens.
bool is_countable(const LengthHistogram& histogram) {
  std::uint64_t tokens = 0;
  for (std::size_t length = 1; length < histogram.counts.size(); ++length) {
    std::uint64_t more = 0;
    if (__builtin_mul_overflow(histogram.counts[length], length, &more)) return false;
    if (__builtin_add_overflow(tokens, more, &tokens) || tokens > kMostTokens) return false;
  }
  return true;
}

}  // namespace

std::uint64_t PackingPlan::num_packs() const {
  std::uint64_t packs = 0;
  for (const PackPattern& pattern : patterns) packs += pattern.count;
  return packs;
}

void check_problem(const PackingProblem& problem) {
  base::require(problem.capacity >= 1, "the capacity of a pack must be at least 1: {}", problem.capacity);
  base::require(problem.capacity <= kGreatestCapacity, "the capacity of a pack must be at most {}: {}",
                kGreatestCapacity, problem.capacity);
  base::require(problem.depth >= 1, "the depth of a pack must be at least 1: {}", problem.depth);
  const std::vector<std::uint64_t>& counts = problem.histogram.counts;
  if (!counts.empty() && counts[0] > 0) {
    base::fail("a sequence must have at least one token: {} have length 0", counts[0]);
  }
  const std::int64_t longest = problem.histogram.longest();
  base::require(longest >= 1, "there are no sequences to pack");
  base::require(longest <= problem.capacity, "a sequence is longer than a pack: length {} > capacity {}",
                longest, problem.capacity);
  base::require(is_countable(problem.histogram), "there are more than 2^62 tokens, which cannot be counted");
}

std::optional<std::string> find_fault(const PackingPlan& plan, const PackingProblem& problem) {
  std::vector<std::uint64_t> placed(problem.histogram.counts.size());
  for (const PackPattern& pattern : plan.patterns) {
    if (auto fault = find_pattern_fault(pattern, problem)) return fault;
    for (const std::int32_t length : pattern.lengths) {
      std::uint64_t& sum = placed[static_cast<std::size_t>(length)];
      const std::uint64_t sequences = problem.histogram.counts[static_cast<std::size_t>(length)];
      if (pattern.count > sequences - sum) {
        return fmt::format(
            "a plan must place every sequence once: length {} occurs {} times and is placed more often",
            length, sequences);
      }
      sum += pattern.count;
    }
  }
  for (std::size_t length = 1; length < placed.size(); ++length) {
    if (placed[length] != problem.histogram.counts[length]) {
      return fmt::format(
          "a plan must place every sequence once: length {} occurs {} times and is placed {} times", length,
          problem.histogram.counts[length], placed[length]);
    }
  }
  return std::nullopt;
}

void check_plan(const PackingPlan& plan, const PackingProblem& problem) {
  const std::optional<std::string> fault = find_fault(plan, problem);
  base::check(!fault.has_value(), "{}", fault.value_or(""));
}

}  // namespace plenum::packing

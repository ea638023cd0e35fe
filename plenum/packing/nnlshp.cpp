#include "plenum/packing/nnlshp.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "plenum/base/check.h"
#include "plenum/packing/length_runs.h"
#include "plenum/packing/nonnegative_least_squares.h"

namespace plenum::packing {
namespace {

/// Lengths up to this one are common fillers: missing them costs little, so they weigh less.
constexpr std::int64_t kLongestFiller = 8;
constexpr double kFillerWeight = 0.09;

using Lengths = std::vector<std::int32_t>;

double weight_of(std::int64_t length) {
  return length <= kLongestFiller ? kFillerWeight : 1.0;
}

/// Every way to write `capacity` as a sum of at most `depth` (2 or 3) lengths, each descending.
std::vector<Lengths> exact_patterns(std::int32_t capacity, std::int64_t depth) {
  std::vector<Lengths> patterns;
  for (std::int32_t shortest = 1; 2 * shortest <= capacity; ++shortest) {
    for (std::int32_t middle = shortest; depth == 3 && shortest + 2 * middle <= capacity; ++middle) {
      patterns.push_back({capacity - shortest - middle, middle, shortest});
    }
    patterns.push_back({capacity - shortest, shortest});
  }
  patterns.push_back({capacity});
  return patterns;
}

/// How often each pattern holds each length, weighted; row l - 1 is length l.
SparseColumns cover_matrix(const std::vector<Lengths>& patterns) {
  SparseColumns matrix;
  std::vector<SparseEntry> column;
  for (const Lengths& lengths : patterns) {
    column.clear();
    for_each_run(lengths, [&](std::size_t length, std::uint64_t copies) {
      const double weight = weight_of(static_cast<std::int64_t>(length));
      column.push_back({static_cast<std::int32_t>(length) - 1, weight * static_cast<double>(copies)});
    });
    matrix.append(column);
  }
  return matrix;
}

/// Turns `num_packs` packs of `lengths` into patterns that hold only sequences there are, and takes them from
/// `unplaced`. A pack for which nothing is left is none.
void fill_packs(const Lengths& lengths, std::uint64_t num_packs, std::vector<std::uint64_t>& unplaced,
                std::vector<PackPattern>& patterns) {
  while (num_packs > 0) {
    Lengths held;
    std::uint64_t count = num_packs;
    for_each_run(lengths, [&](std::size_t length, std::uint64_t slots) {
      const std::uint64_t copies = std::min(unplaced[length], slots);
      held.insert(held.end(), copies, static_cast<std::int32_t>(length));
      if (copies > 0) count = std::min(count, unplaced[length] / copies);
    });
    if (held.empty()) return;
    for (const std::int32_t length : held) unplaced[static_cast<std::size_t>(length)] -= count;
    patterns.push_back({held, count});
    num_packs -= count;
  }
}

/// Adds up packs of the same lengths.
void merge_equal(std::vector<PackPattern>& patterns) {
  std::sort(patterns.begin(), patterns.end(), [](const PackPattern& a, const PackPattern& b) {
    return std::lexicographical_compare(a.lengths.begin(), a.lengths.end(), b.lengths.begin(),
                                        b.lengths.end(), std::greater<>());
  });
  std::size_t last = 0;
  for (std::size_t i = 1; i < patterns.size(); ++i) {
    if (patterns[i].lengths == patterns[last].lengths) {
      patterns[last].count += patterns[i].count;
    } else {
      if (++last != i) patterns[last] = std::move(patterns[i]);
    }
  }
  patterns.resize(last + 1);
}

}  // namespace

std::optional<std::string> reason_against_nnlshp(const PackingProblem& problem) {
  if (problem.depth < 2 || problem.depth > kNnlshpGreatestDepth) {
    return fmt::format("it packs at most 2 or 3 sequences together, and the depth is {}", problem.depth);
  }
  if (problem.capacity > kNnlshpLargestCapacity) {
    return fmt::format("it is for capacities up to {}, and this one is {}", kNnlshpLargestCapacity,
                       problem.capacity);
  }
  return std::nullopt;
}

PackingPlan pack_nnlshp(const PackingProblem& problem) {
  check_problem(problem);
  if (const auto reason = reason_against_nnlshp(problem)) base::fail("nnlshp cannot pack this: {}", *reason);
  std::vector<std::uint64_t> unplaced = problem.histogram.counts;
  unplaced.resize(static_cast<std::size_t>(problem.capacity) + 1);
  std::vector<double> target;
  for (std::int64_t length = 1; length <= problem.capacity; ++length) {
    target.push_back(weight_of(length) * static_cast<double>(unplaced[static_cast<std::size_t>(length)]));
  }

  const std::vector<Lengths> patterns =
      exact_patterns(static_cast<std::int32_t>(problem.capacity), problem.depth);
  const std::vector<double> repeats = solve_nonnegative_least_squares(cover_matrix(patterns), target);
  PackingPlan plan{.capacity = problem.capacity, .depth = problem.depth, .patterns = {}};
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const auto num_packs = static_cast<std::uint64_t>(std::llrint(repeats[i]));
    if (num_packs > 0) fill_packs(patterns[i], num_packs, unplaced, plan.patterns);
  }
  for (std::size_t length = 1; length < unplaced.size(); ++length) {
    if (unplaced[length] > 0)
      plan.patterns.push_back({{static_cast<std::int32_t>(length)}, unplaced[length]});
  }
  merge_equal(plan.patterns);
  return plan;
}

}  // namespace plenum::packing

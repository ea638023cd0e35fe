#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "plenum/packing/plan.h"

namespace plenum::packing {

/// Problems small enough to solve by trying everything, and the published ones.
inline PackingProblem problem_of(std::int64_t capacity, std::int64_t depth,
                                 const std::map<std::int32_t, std::uint64_t>& counts) {
  PackingProblem problem{.histogram = {std::vector<std::uint64_t>(static_cast<std::size_t>(capacity) + 1)},
                         .capacity = capacity,
                         .depth = depth};
  for (const auto& [length, count] : counts)
    problem.histogram.counts[static_cast<std::size_t>(length)] = count;
  return problem;
}

/// Up to `max_sequences` sequences of random lengths, with a random capacity up to `max_capacity` and depth.
inline PackingProblem random_problem(std::mt19937& random, std::int64_t max_capacity,
                                     std::int64_t max_sequences) {
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  const std::int64_t capacity = between(1, max_capacity);
  const std::int64_t shortest = between(1, capacity);
  const std::int64_t longest = between(shortest, capacity);
  const std::int64_t depth = between(0, 2) == 0 ? capacity : between(1, std::min<std::int64_t>(capacity, 5));
  PackingProblem problem = problem_of(capacity, depth, {});
  for (std::int64_t left = between(1, max_sequences); left > 0;) {
    const std::int64_t copies = between(1, std::min<std::int64_t>(left, 3));
    problem.histogram.counts[static_cast<std::size_t>(between(shortest, longest))] +=
        static_cast<std::uint64_t>(copies);
    left -= copies;
  }
  return problem;
}

/// The fewest packs, found by trying every way to fill the pack of the longest sequence left.
class ExhaustiveSearch {
 public:
  explicit ExhaustiveSearch(const PackingProblem& problem) : problem_(problem) {}

  std::uint64_t fewest_packs() { return fewest(problem_.histogram.counts); }

 private:
  std::uint64_t fewest(std::vector<std::uint64_t> counts) {
    std::size_t longest = counts.size() - 1;
    while (longest > 0 && counts[longest] == 0) --longest;
    if (longest == 0) return 0;
    const auto known = solved_.find(counts);
    if (known != solved_.end()) return known->second;
    const std::vector<std::uint64_t> key = counts;
    --counts[longest];
    const std::uint64_t packs =
        1 + fewest_after(counts, longest, problem_.capacity - static_cast<std::int64_t>(longest),
                         problem_.depth - 1);
    solved_.emplace(key, packs);
    return packs;
  }

  /// The fewest further packs if the open pack may still take lengths up to `length`.
  std::uint64_t fewest_after(std::vector<std::uint64_t>& counts, std::size_t length, std::int64_t tokens,
                             std::int64_t depth) {
    std::uint64_t best = fewest(counts);
    if (depth == 0) return best;
    for (std::size_t next = std::min(length, static_cast<std::size_t>(tokens)); next > 0; --next) {
      if (counts[next] == 0) continue;
      --counts[next];
      best = std::min(best, fewest_after(counts, next, tokens - static_cast<std::int64_t>(next), depth - 1));
      ++counts[next];
    }
    return best;
  }

  const PackingProblem& problem_;
  std::map<std::vector<std::uint64_t>, std::uint64_t> solved_;
};

/// A published histogram; line i of the file is the count of length i.
inline PackingProblem golden_problem(const std::string& name, std::int64_t capacity, std::int64_t depth) {
  PackingProblem problem{.histogram = {{0}}, .capacity = capacity, .depth = depth};
  std::ifstream file(std::string(PLENUM_SOURCE_DIR) + "/tests/golden/" + name);
  for (std::uint64_t count = 0; file >> count;) problem.histogram.counts.push_back(count);
  return problem;
}

}  // namespace plenum::packing

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "plenum/base/philox.h"
#include "plenum/packing/plan.h"

#include "tests/packing/small_problems.h"

namespace plenum::packing {

/// tests/golden/<name>_histogram.txt with packs as long as its longest sequence; depth 0 means unlimited.
inline PackingProblem published_problem(const std::string& name, std::int64_t depth) {
  PackingProblem problem = golden_problem(name + "_histogram.txt", 0, depth);
  problem.capacity = problem.histogram.longest();
  if (depth == 0) problem.depth = problem.capacity;
  EXPECT_GT(problem.capacity, 0) << name << " could not be read";
  return problem;
}

/// The `index`-th problem of an endless list: capacities up to `greatest_capacity`, few or many lengths,
/// small or large counts, lengths anywhere, only short, or around half; depth 1 to 4 or unlimited.
inline PackingProblem shaped_problem(std::uint64_t index, std::int64_t greatest_capacity) {
  const base::RandomFunction random(2026, base::Purpose::Holdout);
  std::uint32_t draw = 0;
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(
        base::to_range(random(index, draw++), static_cast<std::uint64_t>(bound)));
  };
  PackingProblem problem;
  problem.capacity = 1 + below(greatest_capacity);
  problem.depth = below(3) == 0 ? problem.capacity : 1 + below(4);
  problem.histogram.counts.resize(static_cast<std::size_t>(problem.capacity) + 1);
  const std::int64_t num_draws = 1 + below(below(2) == 0 ? 4 : problem.capacity);
  const std::int64_t shape = below(3);
  const std::int64_t largest_count = below(2) == 0 ? 3 : 200;
  for (std::int64_t i = 0; i < num_draws; ++i) {
    std::int64_t length = 1 + below(problem.capacity);
    if (shape == 1) length = 1 + below(std::max<std::int64_t>(problem.capacity / 4, 1));
    if (shape == 2) length = std::min(problem.capacity, problem.capacity / 2 + below(3) + 1);
    problem.histogram.counts[static_cast<std::size_t>(length)] +=
        static_cast<std::uint64_t>(1 + below(largest_count));
  }
  return problem;
}

}  // namespace plenum::packing

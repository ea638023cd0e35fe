#include "plenum/packing/fullest_fit.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "plenum/packing/price_nodes.h"

#include "small_problems.h"

namespace plenum::packing {
namespace {

PackingPlan fitted(const PackingProblem& problem) {
  std::vector<std::int32_t> lengths = lengths_that_occur(problem.histogram);
  std::reverse(lengths.begin(), lengths.end());
  PackingPlan plan{.capacity = problem.capacity, .depth = problem.depth, .patterns = {}};
  append_fullest_fit(problem.histogram.counts, lengths, plan);
  return plan;
}

TEST(FullestFit, FindsTheSumThatFillsAPack) {
  // First fit decreasing puts 6 and 3 together, which leaves a token and takes three packs.
  const PackingProblem problem = problem_of(10, 10, {{6, 1}, {3, 2}, {2, 4}});
  const PackingPlan plan = fitted(problem);
  check_plan(plan, problem);
  EXPECT_EQ(plan.num_packs(), 2u);
  EXPECT_EQ(plan.patterns.front().lengths, (std::vector<std::int32_t>{6, 2, 2}));
}

TEST(FullestFit, PlacesEverySequenceWithinCapacityAndDepth) {
  std::mt19937 random(22);
  for (int trial = 0; trial < 1000; ++trial) {
    const PackingProblem problem = random_problem(random, 60, 200);
    EXPECT_EQ(find_fault(fitted(problem), problem), std::nullopt) << "trial " << trial;
  }
}

TEST(FullestFit, CostsNoMoreForHugeCounts) {
  const std::uint64_t huge = std::uint64_t{1} << 40;
  const PackingProblem problem = problem_of(512, 512, {{100, huge}, {56, 2 * huge}});
  const PackingPlan plan = fitted(problem);
  check_plan(plan, problem);
  EXPECT_LE(plan.patterns.size(), 10u);
}

}  // namespace
}  // namespace plenum::packing

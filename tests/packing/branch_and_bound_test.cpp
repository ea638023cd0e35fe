#include "plenum/packing/branch_and_bound.h"

#include <random>

#include <gtest/gtest.h>

#include "small_problems.h"

namespace plenum::packing {
namespace {

constexpr std::int64_t kManyNodes = 1'000'000;

/// Those of the volume bound.
DualWeights volume_weights(const PackingProblem& problem) {
  std::vector<double> duals;
  for (std::int64_t length = 0; length <= problem.capacity; ++length) {
    duals.push_back(static_cast<double>(length) / static_cast<double>(problem.capacity));
  }
  return feasible_weights(problem, weights_of_duals(duals, problem.capacity));
}

TEST(SearchPlan, FindsTheOptimumAndRefutesOnePackLess) {
  std::mt19937 random(21);
  for (int trial = 0; trial < 500; ++trial) {
    const PackingProblem problem = random_problem(random, 24, 9);
    const std::uint64_t optimum = ExhaustiveSearch(problem).fewest_packs();
    const DualWeights weights = volume_weights(problem);
    const Deadline never(1e9);
    const SearchOutcome found = search_plan(problem, optimum, weights, kManyNodes, never);
    ASSERT_TRUE(found.plan.has_value()) << "trial " << trial;
    check_plan(*found.plan, problem);
    EXPECT_LE(found.plan->num_packs(), optimum);
    EXPECT_FALSE(found.refuted);
    const SearchOutcome refuted = search_plan(problem, optimum - 1, weights, kManyNodes, never);
    EXPECT_FALSE(refuted.plan.has_value());
    EXPECT_TRUE(refuted.refuted) << "trial " << trial;
  }
}

TEST(SearchPlan, RefutesNothingWhenItGivesUp) {
  const PackingProblem problem = problem_of(100, 100, {{44, 6}, {33, 12}, {26, 6}, {15, 10}, {7, 20}});
  const std::uint64_t fewest = volume_bound(problem).packs;
  const SearchOutcome outcome = search_plan(problem, fewest, volume_weights(problem), 1, Deadline(1e9));
  EXPECT_FALSE(outcome.plan.has_value());
  EXPECT_FALSE(outcome.refuted);
  EXPECT_FALSE(search_plan(problem, fewest, volume_weights(problem), kManyNodes, Deadline(0)).refuted);
}

}  // namespace
}  // namespace plenum::packing

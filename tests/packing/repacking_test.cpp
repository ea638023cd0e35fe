#include "plenum/packing/repacking.h"

#include <random>

#include <gtest/gtest.h>

#include "plenum/packing/bounds.h"

#include "small_problems.h"

namespace plenum::packing {
namespace {

/// Every sequence in a pack of its own.
PackingPlan one_to_a_pack(const PackingProblem& problem) {
  PackingPlan plan{.capacity = problem.capacity, .depth = problem.depth, .patterns = {}};
  for (std::size_t length = problem.histogram.counts.size() - 1; length > 0; --length) {
    const std::uint64_t count = problem.histogram.counts[length];
    if (count > 0) plan.patterns.push_back({{static_cast<std::int32_t>(length)}, count});
  }
  return plan;
}

std::vector<double> volume_duals(const PackingProblem& problem) {
  std::vector<double> duals;
  for (std::int64_t length = 0; length <= problem.capacity; ++length) {
    duals.push_back(static_cast<double>(length) / static_cast<double>(problem.capacity));
  }
  return duals;
}

TEST(Repacking, MakesTheBestOfABadPlan) {
  std::mt19937 random(23);
  for (int trial = 0; trial < 100; ++trial) {
    const PackingProblem problem = random_problem(random, 24, 9);
    const std::uint64_t optimum = ExhaustiveSearch(problem).fewest_packs();
    Repacking repacking(problem, one_to_a_pack(problem), volume_duals(problem));
    repacking.run(optimum, 1000, Deadline(1e9));
    EXPECT_EQ(repacking.num_packs(), optimum) << "trial " << trial;
    EXPECT_EQ(repacking.plan().num_packs(), optimum);
    EXPECT_EQ(find_fault(repacking.plan(), problem), std::nullopt);
  }
}

TEST(Repacking, GoesOnWhereItStopped) {
  std::mt19937 random(24);
  const PackingProblem problem = random_problem(random, 100, 300);
  Repacking at_once(problem, one_to_a_pack(problem), volume_duals(problem));
  at_once.run(0, 20, Deadline(1e9));
  Repacking in_turns(problem, one_to_a_pack(problem), volume_duals(problem));
  in_turns.run(0, 5, Deadline(1e9));
  in_turns.run(0, 15, Deadline(1e9));
  const PackingPlan first = at_once.plan();
  const PackingPlan second = in_turns.plan();
  ASSERT_EQ(first.patterns.size(), second.patterns.size());
  for (std::size_t i = 0; i < first.patterns.size(); ++i) {
    EXPECT_EQ(first.patterns[i].lengths, second.patterns[i].lengths);
    EXPECT_EQ(first.patterns[i].count, second.patterns[i].count);
  }
}

TEST(Repacking, StopsAtEnoughPacks) {
  const PackingProblem problem = problem_of(100, 100, {{50, 10}});
  Repacking repacking(problem, one_to_a_pack(problem), volume_duals(problem));
  repacking.run(10, 100, Deadline(1e9));
  EXPECT_EQ(repacking.num_packs(), 10u);
  repacking.run(5, 100, Deadline(1e9));
  EXPECT_EQ(repacking.num_packs(), 5u);
}

}  // namespace
}  // namespace plenum::packing

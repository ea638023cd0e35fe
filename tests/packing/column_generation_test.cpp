#include "plenum/packing/column_generation.h"

#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "small_problems.h"

namespace plenum::packing {
namespace {

/// Checks that the fractional packs hold every sequence, a slot taking any length up to its own.
void expect_covers(const Relaxation& relaxation, const PackingProblem& problem) {
  std::vector<double> slots(static_cast<std::size_t>(problem.capacity) + 1);
  double total = 0;
  for (const FractionalPattern& pattern : relaxation.patterns) {
    total += pattern.activity;
    EXPECT_LE(std::accumulate(pattern.lengths.begin(), pattern.lengths.end(), std::int64_t{0}),
              problem.capacity);
    EXPECT_LE(static_cast<std::int64_t>(pattern.lengths.size()), problem.depth);
    for (const std::int32_t length : pattern.lengths)
      slots[static_cast<std::size_t>(length)] += pattern.activity;
  }
  EXPECT_NEAR(total, relaxation.objective, 1e-6);
  double spare = 0;
  for (std::size_t length = slots.size() - 1; length > 0; --length) {
    spare += slots[length] - static_cast<double>(problem.histogram.counts[length]);
    EXPECT_GE(spare, -1e-6) << "length " << length;
  }
}

TEST(Relax, FindsTheKnownOptimumOfASmallProgram) {
  // Three of length 4 share a pack of 12 and two of length 5 do; 4 + 4 + ... beside 5 leaves 3 free.
  const PackingProblem problem = problem_of(12, 12, {{4, 10}, {5, 7}});
  const Relaxation relaxation = relax(problem, {}, {}, Deadline(10));
  EXPECT_NEAR(relaxation.objective, 10 / 3.0 + 7 / 2.0, 1e-6);
}

TEST(Relax, MeetsItsOwnBoundToTheNextWholePack) {
  std::mt19937 random(6);
  for (int trial = 0; trial < 500; ++trial) {
    const PackingProblem problem = random_problem(random, 60, 200);
    const Relaxation relaxation = relax(problem, {}, {}, Deadline(10));
    expect_covers(relaxation, problem);
    ASSERT_LE(relaxation.bound, relaxation.objective + 1e-6) << "trial " << trial;
    ASSERT_GE(std::ceil(relaxation.bound - 1e-6), std::ceil(relaxation.objective - 1e-6))
        << "trial " << trial;
  }
}

TEST(Relax, UsesOnlyPatternsThatCanBeFilledWhenAsked) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const PackingProblem problem = random_problem(random, 60, 40);
    const Relaxation relaxation = relax(problem, {}, {.choice = PatternChoice::Possible}, Deadline(10));
    expect_covers(relaxation, problem);
    for (const FractionalPattern& pattern : relaxation.patterns) {
      for (const std::int32_t length : pattern.lengths) {
        ASSERT_LE(std::count(pattern.lengths.begin(), pattern.lengths.end(), length),
                  static_cast<std::int64_t>(problem.histogram.counts[static_cast<std::size_t>(length)]));
      }
    }
  }
}

TEST(Relax, CoversEverySequenceWhenThereIsNoTime) {
  const PackingProblem problem = golden_problem("squad_1_1_384_histogram.txt", 384, 4);
  const Relaxation relaxation = relax(problem, {}, {}, Deadline(0));
  expect_covers(relaxation, problem);
  EXPECT_NEAR(relaxation.bound, 15'249'479 / 384.0, 1e-6);
}

TEST(Relax, StopsAtAnObjectiveThatIsGoodEnough) {
  const PackingProblem problem = golden_problem("squad_1_1_384_histogram.txt", 384, 384);
  const Relaxation solved = relax(problem, {}, {}, Deadline(60));
  EXPECT_NEAR(solved.objective, 40'194.246, 1e-3);
  const Relaxation rough = relax(problem, {}, {.good_enough = 41'000}, Deadline(60));
  EXPECT_LE(rough.objective, 41'000.001);
  EXPECT_GT(rough.objective, solved.objective + 10);
}

}  // namespace
}  // namespace plenum::packing

#include "plenum/packing/bounds.h"

#include <random>

#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "small_problems.h"

namespace plenum::packing {
namespace {

/// Martello and Toth's definition, one threshold at a time.
std::uint64_t l2_by_definition(const PackingProblem& problem) {
  const std::int64_t capacity = problem.capacity;
  std::int64_t best = 0;
  for (std::int64_t threshold = 0; threshold <= capacity / 2; ++threshold) {
    std::int64_t alone = 0, large = 0, large_tokens = 0, small_tokens = 0;
    for (std::int64_t length = 1; length <= capacity; ++length) {
      const auto count =
          static_cast<std::int64_t>(problem.histogram.counts[static_cast<std::size_t>(length)]);
      if (length > capacity - threshold) {
        alone += count;
      } else if (2 * length > capacity) {
        large += count;
        large_tokens += count * length;
      } else if (length >= threshold) {
        small_tokens += count * length;
      }
    }
    const std::int64_t overflow = small_tokens - (large * capacity - large_tokens);
    best = std::max(best, alone + large + std::max<std::int64_t>(0, (overflow + capacity - 1) / capacity));
  }
  return static_cast<std::uint64_t>(best);
}

TEST(VolumeBound, RoundsUp) {
  EXPECT_EQ(volume_bound(problem_of(10, 10, {{5, 4}})).packs, 2u);
  EXPECT_EQ(volume_bound(problem_of(10, 10, {{5, 4}, {1, 1}})).packs, 3u);
  EXPECT_EQ(volume_bound(problem_of(10, 10, {{5, 4}})).proof, "volume");
}

TEST(DepthBound, RoundsUp) {
  EXPECT_EQ(depth_bound(problem_of(10, 3, {{1, 6}})).packs, 2u);
  EXPECT_EQ(depth_bound(problem_of(10, 3, {{1, 7}})).packs, 3u);
  EXPECT_EQ(depth_bound(problem_of(10, 3, {{1, 7}})).proof, "depth");
}

TEST(L2Bound, CountsSequencesOverHalfApart) {
  EXPECT_EQ(l2_bound(problem_of(10, 10, {{6, 7}})).packs, 7u);
  EXPECT_EQ(l2_bound(problem_of(10, 10, {{6, 7}})).proof, "L2");
}

TEST(L2Bound, EqualsItsDefinition) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 3000; ++trial) {
    const PackingProblem problem = random_problem(random, 40, 60);
    ASSERT_EQ(l2_bound(problem).packs, l2_by_definition(problem)) << "trial " << trial;
  }
}

TEST(L2Bound, TakesNoLongerForACapacityFarAboveEveryLength) {
  PackingProblem problem = problem_of(10, 10, {{6, 7}, {3, 2}});
  problem.capacity = std::int64_t{1} << 60;
  EXPECT_EQ(l2_bound(problem).packs, 1u);
}

TEST(CombinatorialBound, NamesTheBestAndSimplestProof) {
  EXPECT_EQ(combinatorial_bound(problem_of(10, 10, {{5, 4}})).proof, "volume");
  EXPECT_EQ(combinatorial_bound(problem_of(10, 10, {{6, 4}})).proof, "L2");
  EXPECT_EQ(combinatorial_bound(problem_of(10, 2, {{1, 8}})).proof, "depth");
}

TEST(Bounds, NeverExceedTheOptimum) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 3000; ++trial) {
    const PackingProblem problem = random_problem(random, 24, 9);
    const std::uint64_t optimum = ExhaustiveSearch(problem).fewest_packs();
    ASSERT_LE(combinatorial_bound(problem).packs, optimum) << "trial " << trial;
    DualWeights weights{.weight_of_length = {}, .denominator = 1000};
    for (std::int64_t length = 0; length <= problem.capacity; ++length) {
      weights.weight_of_length.push_back(random() % 1500);
    }
    ASSERT_LE(dual_bound(problem, weights).packs, optimum) << "trial " << trial;
  }
}

TEST(DualBound, IsTheVolumeBoundForWeightsByLength) {
  const PackingProblem problem = problem_of(10, 10, {{7, 3}, {2, 9}, {1, 1}});
  DualWeights weights{.weight_of_length = {}, .denominator = 10};
  for (std::uint64_t length = 0; length <= 10; ++length) weights.weight_of_length.push_back(length);
  EXPECT_EQ(dual_bound(problem, weights).packs, volume_bound(problem).packs);
  EXPECT_EQ(dual_bound(problem, weights).proof, "LP dual");
}

TEST(DualBound, UsesTheDepth) {
  // Half a pack each is valid when two share a pack, and must be cut to a tenth when ten do.
  const DualWeights weights{.weight_of_length = {0, 1}, .denominator = 2};
  EXPECT_EQ(dual_bound(problem_of(10, 2, {{1, 100}}), weights).packs, 50u);
  EXPECT_EQ(
      dual_bound(problem_of(10, 10, {{1, 100}}), {.weight_of_length = {0, 500}, .denominator = 1000}).packs,
      10u);
}

TEST(DualBound, ScalesInfeasibleWeightsDownExactly) {
  // Two of weight 2/3 fit together, so the weights shrink to 1/2.
  const DualWeights weights{.weight_of_length = {0, 0, 0, 0, 0, 800}, .denominator = 1200};
  EXPECT_EQ(dual_bound(problem_of(10, 10, {{5, 101}}), weights).packs, 51u);
}

TEST(DualBound, LowersAWeightAboveOnePack) {
  const DualWeights weights{.weight_of_length = {0, 0, 0, 0, 0, 0, 9000}, .denominator = 1000};
  EXPECT_EQ(dual_bound(problem_of(10, 10, {{6, 5}}), weights).packs, 5u);
}

TEST(DualBound, RejectsADenominatorThatCouldOverflow) {
  const PackingProblem problem = problem_of(10, 10, {{6, 5}});
  EXPECT_THROW(dual_bound(problem, {.weight_of_length = {}, .denominator = 0}), base::InternalError);
  EXPECT_THROW(dual_bound(problem, {.weight_of_length = {}, .denominator = std::uint64_t{1} << 63}),
               base::InternalError);
}

TEST(Bounds, HoldForCountsAndTokensNearTheirLimits) {
  // 2^40 sequences of nearly 2^23 tokens: just below 2^63 tokens.
  const std::int64_t capacity = std::int64_t{1} << 23;
  PackingProblem problem = problem_of(capacity, capacity, {{(1 << 23) - 1, std::uint64_t{1} << 40}});
  EXPECT_EQ(volume_bound(problem).packs, (std::uint64_t{1} << 40) - (std::uint64_t{1} << 17));
  EXPECT_EQ(l2_bound(problem).packs, std::uint64_t{1} << 40);

  problem = problem_of(1024, 1024, {{511, std::uint64_t{1} << 53}});
  DualWeights weights{.weight_of_length = std::vector<std::uint64_t>(1025),
                      .denominator = greatest_dual_denominator(1024)};
  weights.weight_of_length[511] = weights.denominator / 2;
  EXPECT_EQ(dual_bound(problem, weights).packs, std::uint64_t{1} << 52);
}

}  // namespace
}  // namespace plenum::packing

#include "plenum/packing/pack_builder.h"

#include <gtest/gtest.h>

#include "plenum/packing/mixed_fit.h"

#include "small_problems.h"

namespace plenum::packing {
namespace {

TEST(PackBuilder, FillsSlotsWithTheLongestThatFits) {
  PackBuilder builder(problem_of(10, 10, {{6, 2}, {3, 1}, {2, 1}}));
  const std::vector<std::int32_t> slots{7, 3};
  EXPECT_FALSE(builder.can_make(slots));
  builder.make(slots, 5);
  const PackingPlan plan = builder.plan();
  ASSERT_EQ(plan.patterns.size(), 2u);
  EXPECT_EQ(plan.patterns[0].lengths, (std::vector<std::int32_t>{6, 3}));
  EXPECT_EQ(plan.patterns[1].lengths, (std::vector<std::int32_t>{6, 2}));
  EXPECT_EQ(builder.num_remaining(), 0u);
  EXPECT_EQ(builder.num_packs(), 2u);
}

TEST(PackBuilder, MakesNoEmptyPacks) {
  PackBuilder builder(problem_of(10, 10, {{6, 2}}));
  builder.make(std::vector<std::int32_t>{5, 5}, 3);
  EXPECT_EQ(builder.num_packs(), 0u);
  EXPECT_EQ(builder.num_remaining(), 2u);
}

TEST(PackBuilder, MakesManyPacksAtOnceAndMergesEqualOnes) {
  const std::uint64_t many = std::uint64_t{1} << 40;
  const PackingProblem problem = problem_of(10, 10, {{5, 2 * many + 1}, {3, 4}});
  PackBuilder builder(problem);
  const std::vector<std::int32_t> slots{5, 5};
  EXPECT_TRUE(builder.can_make(slots));
  builder.make(slots, many - 7);
  builder.make(slots, 7);
  builder.make_rest();
  const PackingPlan plan = builder.plan();
  check_plan(plan, problem);
  EXPECT_EQ(plan.patterns.front().count, many);
  EXPECT_EQ(plan.num_packs(), builder.num_packs());
}

TEST(MixedFit, WithoutShortOnesIsFirstFitDecreasing) {
  PackingProblem problem = golden_problem("wikipedia_512_histogram.txt", 512, 512);
  PackingPlan plan{.capacity = 512, .depth = 512, .patterns = {}};
  append_mixed_fit(problem.histogram.counts, 0, plan);
  check_plan(plan, problem);
  EXPECT_EQ(plan.num_packs(), 8'138'483u);
}

TEST(MixedFit, PlacesEverySequenceOnce) {
  std::mt19937 random(8);
  for (int trial = 0; trial < 2000; ++trial) {
    const PackingProblem problem = random_problem(random, 50, 100);
    PackingPlan plan{.capacity = problem.capacity, .depth = problem.depth, .patterns = {}};
    append_mixed_fit(problem.histogram.counts, static_cast<std::int64_t>(random() % 5), plan);
    check_plan(plan, problem);
  }
}

}  // namespace
}  // namespace plenum::packing

#include "plenum/packing/optimal.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "small_problems.h"

namespace plenum::packing {
namespace {

/// Packs, checks the plan against the problem and the bound against the plan, and returns both.
OptimalResult packed(const PackingProblem& problem, const OptimalOptions& options = {}) {
  OptimalResult result = pack_optimal(problem, options);
  check_plan(result.plan, problem);
  EXPECT_LE(result.bound.packs, result.plan.num_packs());
  EXPECT_EQ(result.plan.capacity, problem.capacity);
  EXPECT_EQ(result.plan.depth, problem.depth);
  return result;
}

/// Random counts of lengths up to a `share`-th of a pack of 64 to 512 tokens; the last few are chosen such
/// that full packs hold them all.
PackingProblem exactly_filling_problem(std::mt19937& random, std::int64_t share) {
  const std::int64_t capacity = 64 << random() % 4;
  const std::int64_t longest = capacity / share;
  const std::uint64_t most = 1 + random() % 200;
  PackingProblem problem = problem_of(capacity, capacity, {});
  for (std::int64_t length = 1 + longest / 4; length <= longest; ++length) {
    problem.histogram.counts[static_cast<std::size_t>(length)] = random() % most;
  }
  const auto spare = static_cast<std::int64_t>(problem.histogram.num_tokens()) % capacity;
  for (std::int64_t left = capacity - spare; left > 0; left -= std::min(left, longest)) {
    ++problem.histogram.counts[static_cast<std::size_t>(std::min(left, longest))];
  }
  return problem;
}

struct GoldenCase {
  const char* file;
  std::int64_t capacity;
  std::int64_t depth;
  std::uint64_t bound;
  std::uint64_t at_most;
};

class PackOptimalGolden : public testing::TestWithParam<GoldenCase> {};

TEST_P(PackOptimalGolden, ReachesTheTargetAndProvesTheBound) {
  const GoldenCase& expected = GetParam();
  // No time limit to speak of, so that a slow machine gives the same plan.
  const OptimalResult result =
      packed(golden_problem(expected.file, expected.capacity, expected.depth), {.time_limit_seconds = 3600});
  EXPECT_EQ(result.bound.packs, expected.bound);
  EXPECT_LE(result.plan.num_packs(), expected.at_most);
}

constexpr const char* kWikipedia = "wikipedia_512_histogram.txt";
constexpr const char* kSquad = "squad_1_1_384_histogram.txt";
INSTANTIATE_TEST_SUITE_P(Published, PackOptimalGolden,
                         testing::Values(GoldenCase{kWikipedia, 512, 1, 16'279'552, 16'279'552},
                                         GoldenCase{kWikipedia, 512, 2, 10'099'081, 10'099'081},
                                         GoldenCase{kWikipedia, 512, 3, 8'143'829, 8'143'831},
                                         GoldenCase{kWikipedia, 512, 4, 8'135'727, 8'135'729},
                                         GoldenCase{kWikipedia, 512, 8, 8'135'727, 8'135'729},
                                         GoldenCase{kWikipedia, 512, 12, 8'135'727, 8'135'729},
                                         GoldenCase{kWikipedia, 512, 16, 8'135'727, 8'135'729},
                                         GoldenCase{kWikipedia, 512, 512, 8'135'727, 8'135'729},
                                         GoldenCase{kSquad, 384, 2, 45'335, 45'335},
                                         GoldenCase{kSquad, 384, 3, 40'195, 40'196},
                                         GoldenCase{kSquad, 384, 4, 40'195, 40'196},
                                         GoldenCase{kSquad, 384, 384, 40'195, 40'196}));

TEST(PackOptimal, EqualsTheOptimumOfSmallProblems) {
  std::mt19937 random(9);
  for (int trial = 0; trial < 2000; ++trial) {
    const PackingProblem problem = random_problem(random, 24, 9);
    const std::uint64_t optimum = ExhaustiveSearch(problem).fewest_packs();
    const OptimalResult result = packed(problem);
    ASSERT_EQ(result.bound.packs, optimum) << "trial " << trial;
    ASSERT_EQ(result.plan.num_packs(), optimum) << "trial " << trial;
  }
}

TEST(PackOptimal, ProvesBySearchWhatTheLinearProgramCannot) {
  // 2/3 + 3/4 + 6/11 is less than 2, but no two packs hold all.
  const PackingProblem problem = problem_of(132, 132, {{44, 2}, {33, 3}, {12, 6}});
  const OptimalResult searched = packed(problem, {.time_limit_seconds = 3600});
  EXPECT_EQ(searched.plan.num_packs(), 3u);
  EXPECT_EQ(searched.bound.packs, 3u);
  EXPECT_EQ(searched.bound.proof, "search");
  EXPECT_EQ(packed(problem, {.search_turns = 0}).bound.packs, 2u);
}

TEST(PackOptimal, ReachesTheBoundOfShortSequencesThatFallInNumber) {
  PackingProblem problem = problem_of(512, 512, {});
  for (std::size_t length = 3; length <= 60; ++length) {
    problem.histogram.counts[length] = (61 - length) * (61 - length) + 1;
  }
  const OptimalResult result = packed(problem);
  EXPECT_EQ(result.bound.packs, 2'236u);
  EXPECT_EQ(result.plan.num_packs(), 2'236u);
}

TEST(PackOptimal, ReachesTheBoundOfShortSequencesWithoutAnyTokenToSpare) {
  std::mt19937 random(13);
  for (int trial = 0; trial < 60; ++trial) {
    const PackingProblem problem = exactly_filling_problem(random, 16);
    const OptimalResult result = packed(problem, {.time_limit_seconds = 3600});
    ASSERT_EQ(result.bound.packs * static_cast<std::uint64_t>(problem.capacity),
              problem.histogram.num_tokens());
    ASSERT_EQ(result.plan.num_packs(), result.bound.packs) << "trial " << trial;
  }
}

TEST(PackOptimal, ReachesTheBoundOfLongerSequencesWithoutAnyTokenToSpare) {
  std::mt19937 random(14);
  for (int trial = 0; trial < 20; ++trial) {
    const PackingProblem problem = exactly_filling_problem(random, 3);
    const OptimalResult result = packed(problem, {.time_limit_seconds = 3600});
    ASSERT_EQ(result.plan.num_packs(), result.bound.packs) << "trial " << trial;
  }
}

TEST(PackOptimal, StaysWithinOnePackOfTheBoundOnRandomHistograms) {
  std::mt19937 random(10);
  for (int trial = 0; trial < 1000; ++trial) {
    const PackingProblem problem = random_problem(random, 100, 300);
    const OptimalResult result = packed(problem);
    ASSERT_LE(result.plan.num_packs(), result.bound.packs + 1) << "trial " << trial;
  }
}

TEST(PackOptimal, EqualsTheOptimumOfSmallProblemsByWayOfFewPrices) {
  std::mt19937 random(12);
  const OptimalOptions options{.few_lengths = 2, .coarse = {.first_nodes = 3, .max_nodes = 6}};
  for (int trial = 0; trial < 1000; ++trial) {
    const PackingProblem problem = random_problem(random, 24, 9);
    const std::uint64_t optimum = ExhaustiveSearch(problem).fewest_packs();
    const OptimalResult result = packed(problem, options);
    ASSERT_LE(result.bound.packs, optimum) << "trial " << trial;
    ASSERT_LE(result.plan.num_packs(), optimum + 1) << "trial " << trial;
  }
}

TEST(PackOptimal, ProvesASmallGapByWayOfPricesAtFewLengths) {
  // Two humps in packs of 768, three sequences each at most: neither volume nor depth alone is the limit.
  PackingProblem problem = problem_of(768, 3, {});
  for (std::int64_t length = 1; length <= 768; ++length) {
    const auto hump = [&](double center, double width) {
      const double away = (static_cast<double>(length) - center) / width;
      return std::exp(-0.5 * away * away) / width;
    };
    problem.histogram.counts[static_cast<std::size_t>(length)] =
        static_cast<std::uint64_t>(1e6 * (0.6 * hump(66, 19) + 0.4 * hump(470, 84)));
  }
  // A limit that no machine reaches: the outcome must not depend on speed.
  const OptimalResult result = packed(problem, {.time_limit_seconds = 3600, .few_lengths = 100});
  EXPECT_EQ(result.bound.proof, "LP dual");
  EXPECT_LE(result.plan.num_packs(), result.bound.packs + 5);
}

TEST(PackOptimal, PacksOneSequence) {
  const OptimalResult result = packed(problem_of(512, 512, {{100, 1}}));
  EXPECT_EQ(result.plan.num_packs(), 1u);
  EXPECT_EQ(result.bound.packs, 1u);
}

TEST(PackOptimal, PacksEqualLengths) {
  const OptimalResult result = packed(problem_of(512, 512, {{200, 1'000'001}}));
  EXPECT_EQ(result.plan.num_packs(), 500'001u);
  EXPECT_EQ(result.bound.packs, 500'001u);
}

TEST(PackOptimal, LeavesSequencesOverHalfAlone) {
  PackingProblem problem = problem_of(512, 512, {});
  for (std::size_t length = 257; length < 320; ++length) problem.histogram.counts[length] = length;
  const OptimalResult result = packed(problem);
  EXPECT_EQ(result.plan.num_packs(), problem.histogram.num_sequences());
  EXPECT_EQ(result.bound.packs, problem.histogram.num_sequences());
}

TEST(PackOptimal, PairsSequencesOverAThird) {
  PackingProblem problem = problem_of(512, 512, {});
  for (std::size_t length = 171; length <= 256; ++length) problem.histogram.counts[length] = 100;
  const OptimalResult result = packed(problem);
  EXPECT_EQ(result.plan.num_packs(), 4'300u);
  EXPECT_EQ(result.bound.packs, 4'300u);
}

TEST(PackOptimal, PacksEveryLengthOnceOrOften) {
  for (const std::uint64_t count : {1u, 1000u}) {
    PackingProblem problem = problem_of(256, 256, {});
    for (std::size_t length = 1; length <= 256; ++length) problem.histogram.counts[length] = count;
    const OptimalResult result = packed(problem);
    EXPECT_EQ(result.plan.num_packs(), result.bound.packs);
  }
}

TEST(PackOptimal, PacksTwoHumps) {
  PackingProblem problem = problem_of(512, 6, {});
  for (std::int64_t length = 1; length <= 512; ++length) {
    const auto hump = [&](std::int64_t center) {
      return std::max<std::int64_t>(0, 900 - (length - center) * (length - center));
    };
    problem.histogram.counts[static_cast<std::size_t>(length)] =
        static_cast<std::uint64_t>(7 * hump(90) + 3 * hump(330));
  }
  const OptimalResult result = packed(problem);
  EXPECT_LE(result.plan.num_packs(), result.bound.packs + 1);
}

TEST(PackOptimal, FillsTripletsExactly) {
  std::mt19937 random(11);
  PackingProblem problem = problem_of(500, 500, {});
  for (int triplet = 0; triplet < 200; ++triplet) {
    const auto first = static_cast<std::size_t>(190 + random() % 55);
    const auto second = static_cast<std::size_t>(126 + random() % ((500 - first) / 2 - 125));
    for (const std::size_t length : {first, second, 500 - first - second}) ++problem.histogram.counts[length];
  }
  const OptimalResult result = packed(problem);
  EXPECT_EQ(result.bound.packs, 200u);
  EXPECT_LE(result.plan.num_packs(), 201u);
}

TEST(PackOptimal, HoldsForHugeCounts) {
  const std::uint64_t huge = std::uint64_t{1} << 40;
  const PackingProblem problem =
      problem_of(512, 4, {{74, huge + 1}, {105, huge / 2 + 12'345}, {165, huge + 7}, {259, huge / 4 + 99}});
  const OptimalResult result = packed(problem);
  EXPECT_LE(result.plan.num_packs(), result.bound.packs + 2);
}

TEST(PackOptimal, TreatsADepthAboveTheCapacityAsUnlimited) {
  const PackingProblem problem = problem_of(8, 1'000'000, {{1, 20}, {3, 5}});
  EXPECT_EQ(packed(problem).plan.num_packs(), 5u);
}

TEST(PackOptimal, GivesTheSamePlanTwice) {
  std::mt19937 random(15);
  for (const PackingProblem& problem : {golden_problem(kSquad, 384, 4), exactly_filling_problem(random, 3),
                                        exactly_filling_problem(random, 3)}) {
    const OptimalResult first = packed(problem, {.time_limit_seconds = 3600});
    const OptimalResult second = packed(problem, {.time_limit_seconds = 3600});
    ASSERT_EQ(first.plan.patterns.size(), second.plan.patterns.size());
    for (std::size_t i = 0; i < first.plan.patterns.size(); ++i) {
      EXPECT_EQ(first.plan.patterns[i].lengths, second.plan.patterns[i].lengths);
      EXPECT_EQ(first.plan.patterns[i].count, second.plan.patterns[i].count);
    }
  }
}

TEST(PackOptimal, KeepsAValidPlanAndBoundWithoutTime) {
  const OptimalResult result = packed(golden_problem(kWikipedia, 512, 4), {.time_limit_seconds = 0});
  EXPECT_LE(result.bound.packs, 8'135'727u);
  EXPECT_GE(result.plan.num_packs(), 8'135'727u);
}

TEST(PackOptimal, PacksGreedilyIntoPacksTooLargeToPrice) {
  PackingProblem problem = problem_of(1000, 1000, {{1000, 3}, {700, 10}, {1, 5}});
  problem.capacity = 10'000'000;
  problem.depth = 6;
  EXPECT_EQ(packed(problem).plan.num_packs(), 3u);
}

TEST(PackOptimal, RejectsALengthAboveTheCapacity) {
  PackingProblem problem = problem_of(10, 10, {{10, 1}});
  problem.capacity = 9;
  EXPECT_THROW(pack_optimal(problem, {}), base::UserError);
}

}  // namespace
}  // namespace plenum::packing

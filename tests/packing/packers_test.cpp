#include "plenum/packing/packers.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/packing/best_fit_decreasing.h"
#include "plenum/packing/lpfhp.h"
#include "plenum/packing/nnlshp.h"
#include "plenum/packing/spfhp.h"

#include "tests/packing/sample_histograms.h"

namespace plenum::packing {
namespace {

const Packer& find_packer(std::string_view name) {
  const auto found = std::ranges::find(all_packers(), name, &Packer::name);
  base::check(found != all_packers().end(), "there is no packer of this name: {}", name);
  return *found;
}

// Counts published for the histograms (arXiv 2107.02027 and its code); depth 0 is unlimited.
TEST(Spfhp, GivesThePublishedCounts) {
  for (const auto& [depth, packs] : {std::pair{1, 16279552u},
                                     {2, 10101683u},
                                     {3, 9094695u},
                                     {4, 8658996u},
                                     {8, 8224673u},
                                     {12, 8166708u},
                                     {16, 8166708u},
                                     {0, 8166708u}}) {
    EXPECT_EQ(pack_spfhp(published_problem("wikipedia_512", depth)).num_packs(), packs) << "depth " << depth;
  }
  for (const auto& [depth, packs] : {std::pair{2, 45335u}, {3, 40711u}, {0, 40711u}}) {
    EXPECT_EQ(pack_spfhp(published_problem("squad_1_1_384", depth)).num_packs(), packs) << "depth " << depth;
  }
}

TEST(Lpfhp, GivesThePublishedCounts) {
  for (const auto& [depth, packs] : {std::pair{2, 10099081u},
                                     {3, 9090154u},
                                     {4, 8657119u},
                                     {8, 8207569u},
                                     {12, 8149619u},
                                     {16, 8140006u},
                                     {0, 8138483u}}) {
    EXPECT_EQ(pack_lpfhp(published_problem("wikipedia_512", depth)).num_packs(), packs) << "depth " << depth;
  }
  for (const auto& [depth, packs] : {std::pair{2, 45335u}, {3, 40631u}, {0, 40631u}}) {
    EXPECT_EQ(pack_lpfhp(published_problem("squad_1_1_384", depth)).num_packs(), packs) << "depth " << depth;
  }
}

// The least-squares solution is not unique and rounding follows it, so a few packs more or less are the same
// result.
TEST(Nnlshp, GivesThePublishedCountsToAFewPacks) {
  EXPECT_NEAR(static_cast<double>(pack_nnlshp(published_problem("wikipedia_512", 3)).num_packs()), 8155059,
              4);
  EXPECT_EQ(pack_nnlshp(published_problem("wikipedia_512", 2)).num_packs(), 13128311u);
  EXPECT_NEAR(static_cast<double>(pack_nnlshp(published_problem("squad_1_1_384", 3)).num_packs()), 40782, 4);
}

TEST(Nnlshp, PacksLengthsThatNoExactSumUses) {
  for (const std::vector<std::uint64_t>& counts : {std::vector<std::uint64_t>{0, 0, 0, 0, 0, 7},
                                                   {0, 5},
                                                   {0, 0, 3, 0, 0, 0, 0, 0, 0, 1},
                                                   {0, 0, 0, 0, 0, 0, 9}}) {
    for (const std::int64_t capacity : {counts.size() - 1, counts.size(), std::size_t{10}, std::size_t{11}}) {
      const PackingProblem problem{.histogram = {counts}, .capacity = capacity, .depth = 3};
      EXPECT_EQ(find_fault(pack_nnlshp(problem), problem), std::nullopt) << "capacity " << capacity;
    }
  }
}

TEST(Nnlshp, RefusesOtherDepthsAndLargeCapacities) {
  PackingProblem problem{.histogram = {{0, 1}}, .capacity = 100, .depth = 4};
  EXPECT_THROW(pack_nnlshp(problem), base::UserError);
  problem.depth = 1;
  EXPECT_THROW(pack_nnlshp(problem), base::UserError);
  problem.depth = 3;
  problem.capacity = kNnlshpLargestCapacity + 1;
  EXPECT_THROW(pack_nnlshp(problem), base::UserError);
}

TEST(BestFitDecreasing, GivesAsManyPacksAsOnCounts) {
  for (std::uint64_t index = 0; index < 1000; ++index) {
    const PackingProblem problem = shaped_problem(index, 40);
    ASSERT_EQ(pack_best_fit_decreasing(problem).num_packs(), pack_lpfhp(problem).num_packs()) << index;
  }
}

class EveryPacker : public testing::TestWithParam<Packer> {};

INSTANTIATE_TEST_SUITE_P(Packers, EveryPacker, testing::ValuesIn(all_packers().begin(), all_packers().end()),
                         [](const auto& info) { return std::string(info.param.name); });

// pack() itself checks the plan and the bound; here they are checked again from outside.
TEST_P(EveryPacker, PlacesEverySequenceOnceOnRandomHistograms) {
  const std::uint64_t num_problems = GetParam().proves_bound ? 300 : 3000;
  std::uint64_t num_packed = 0;
  for (std::uint64_t index = 0; index < num_problems; ++index) {
    const PackingProblem problem = shaped_problem(index, 40);
    if (reason_against(problem, GetParam())) continue;
    const PackingResult result = pack(
        problem, GetParam(),
        {.time_limit_seconds = 5, .max_open_packs = 1 + static_cast<std::int64_t>(index % 9), .seed = index});
    ASSERT_EQ(find_fault(result.plan, problem), std::nullopt) << "problem " << index;
    ASSERT_LE(result.bound.packs, result.plan.num_packs()) << "problem " << index;
    ASSERT_GE(result.bound.packs, 1u);
    ++num_packed;
  }
  EXPECT_GT(num_packed, num_problems / 8);
}

TEST_P(EveryPacker, PacksOneSequence) {
  const PackingProblem problem{.histogram = {{0, 0, 0, 1}}, .capacity = 8, .depth = 3};
  const PackingResult result = pack(problem, GetParam(), {});
  ASSERT_EQ(result.plan.patterns.size(), 1u);
  EXPECT_EQ(result.plan.patterns[0].lengths, std::vector<std::int32_t>{3});
  EXPECT_EQ(result.plan.num_packs(), 1u);
  EXPECT_DOUBLE_EQ(packing_efficiency(result.plan, 3), 3.0 / 8);
}

TEST_P(EveryPacker, GivesTheSamePlanTwice) {
  for (std::uint64_t index = 0; index < 50; ++index) {
    const PackingProblem problem = shaped_problem(index, 40);
    if (reason_against(problem, GetParam())) continue;
    const PackingPlan first = pack(problem, GetParam(), {}).plan;
    const PackingPlan second = pack(problem, GetParam(), {}).plan;
    ASSERT_EQ(first.patterns.size(), second.patterns.size());
    for (std::size_t i = 0; i < first.patterns.size(); ++i) {
      ASSERT_EQ(first.patterns[i].lengths, second.patterns[i].lengths);
      ASSERT_EQ(first.patterns[i].count, second.patterns[i].count);
    }
  }
}

TEST_P(EveryPacker, RefusesWhatCannotBePacked) {
  EXPECT_THROW(pack({.histogram = {{0}}, .capacity = 4, .depth = 2}, GetParam(), {}), base::UserError);
  EXPECT_THROW(pack({.histogram = {{}}, .capacity = 4, .depth = 2}, GetParam(), {}), base::UserError);
  EXPECT_THROW(pack({.histogram = {{0, 0, 1}}, .capacity = 1, .depth = 2}, GetParam(), {}), base::UserError);
  EXPECT_THROW(pack({.histogram = {{0, 1}}, .capacity = 0, .depth = 2}, GetParam(), {}), base::UserError);
  EXPECT_THROW(pack({.histogram = {{0, 1}}, .capacity = 4, .depth = 0}, GetParam(), {}), base::UserError);
  EXPECT_THROW(pack({.histogram = {{2, 1}}, .capacity = 4, .depth = 2}, GetParam(), {}), base::UserError);
  EXPECT_THROW(pack({.histogram = {{0, std::uint64_t{1} << 63}}, .capacity = 4, .depth = 2}, GetParam(), {}),
               base::UserError);
}

TEST(Packers, HaveDifferentNamesAndTheFirstProvesItsBound) {
  std::set<std::string_view> names;
  for (const Packer& packer : all_packers()) {
    EXPECT_FALSE(packer.summary.empty()) << packer.name;
    names.insert(packer.name);
  }
  EXPECT_EQ(names.size(), all_packers().size());
  EXPECT_TRUE(all_packers().front().proves_bound);
}

TEST(Packers, GiveReasonsAgainstAPacker) {
  const PackingProblem problem{.histogram = {{0, std::uint64_t{1} << 40}}, .capacity = 4, .depth = 4};
  EXPECT_NE(reason_against(problem, find_packer("nnlshp"))->find("depth is 4"), std::string::npos);
  EXPECT_NE(reason_against(problem, find_packer("streaming"))->find("1,099,511,627,776"), std::string::npos);
  EXPECT_EQ(reason_against(problem, find_packer("lpfhp")), std::nullopt);
  EXPECT_THROW(pack(problem, find_packer("bfd"), {}), base::UserError);
}

// Counts near the limit: a plan of 2^61 packs is found, checked and bounded without overflow.
TEST(Packers, PackAsManySequencesAsCanBeCounted) {
  const PackingProblem problem{.histogram = {{0, 0, std::uint64_t{1} << 61}}, .capacity = 4, .depth = 4};
  EXPECT_EQ(pack(problem, find_packer("lpfhp"), {}).plan.num_packs(), std::uint64_t{1} << 60);
  // As published, SPFHP opens a pack for each sequence that fits nowhere.
  EXPECT_EQ(pack(problem, find_packer("spfhp"), {}).plan.num_packs(), std::uint64_t{1} << 61);
}

}  // namespace
}  // namespace plenum::packing

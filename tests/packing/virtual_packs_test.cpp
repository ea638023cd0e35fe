#include "plenum/packing/virtual_packs.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/packing/lpfhp.h"
#include "plenum/packing/spfhp.h"

#include "tests/packing/sample_histograms.h"

namespace plenum::packing {
namespace {

TEST(SequenceIds, CountUpInOrderOfLength) {
  const SequenceIds ids(LengthHistogram{{0, 2, 0, 3}});
  EXPECT_EQ(ids.num_sequences(), 5u);
  EXPECT_EQ(ids.first(1), 0u);
  EXPECT_EQ(ids.first(3), 2u);
  EXPECT_EQ(ids.count(3), 3u);
  EXPECT_EQ(ids.count(2), 0u);
  std::vector<std::int64_t> lengths;
  for (std::uint64_t id = 0; id < 5; ++id) lengths.push_back(ids.length_of(id));
  EXPECT_EQ(lengths, (std::vector<std::int64_t>{1, 1, 3, 3, 3}));
  EXPECT_THROW(ids.length_of(5), base::InternalError);
}

TEST(VirtualPacks, PlaceEverySequenceOnceInPacksOfThePlan) {
  for (std::uint64_t index = 0; index < 2000; ++index) {
    const PackingProblem problem = shaped_problem(index, 40);
    const PackingPlan plan = index % 2 == 0 ? pack_lpfhp(problem) : pack_spfhp(problem);
    const VirtualPacks packs(plan, problem.histogram, index, index % 5);
    const SequenceIds ids(problem.histogram);
    ASSERT_EQ(packs.num_packs(), plan.num_packs());
    std::vector<int> seen(ids.num_sequences());
    std::uint64_t pack_index = 0;
    for (const PackPattern& pattern : plan.patterns) {
      for (std::uint64_t i = 0; i < pattern.count; ++i) {
        const std::vector<std::uint64_t> pack = packs.pack(pack_index++);
        ASSERT_EQ(pack.size(), pattern.lengths.size());
        for (std::size_t slot = 0; slot < pack.size(); ++slot) {
          ASSERT_EQ(ids.length_of(pack[slot]), pattern.lengths[slot]);
          ++seen[pack[slot]];
        }
      }
    }
    ASSERT_EQ(static_cast<std::size_t>(std::count(seen.begin(), seen.end(), 1)), seen.size()) << index;
  }
}

TEST(VirtualPacks, DrawAnewForEverySeedAndEpoch) {
  const PackingProblem problem = published_problem("wikipedia_512", 3);
  const PackingPlan plan = pack_lpfhp(problem);
  const VirtualPacks packs(plan, problem.histogram, 1, 0);
  const VirtualPacks other_epoch(plan, problem.histogram, 1, 1);
  const VirtualPacks other_seed(plan, problem.histogram, 2, 0);
  const VirtualPacks same(plan, problem.histogram, 1, 0);
  int num_changed = 0;
  for (std::uint64_t index = 0; index < packs.num_packs(); index += packs.num_packs() / 100) {
    ASSERT_EQ(packs.pack(index), same.pack(index));
    num_changed +=
        packs.pack(index) != other_epoch.pack(index) && packs.pack(index) != other_seed.pack(index);
  }
  EXPECT_GT(num_changed, 90);
}

TEST(VirtualPacks, AreFrozen) {
  const LengthHistogram histogram{{0, 6, 4, 4}};
  const PackingPlan plan{.capacity = 6, .depth = 3, .patterns = {{{3, 2, 1}, 4}, {{1, 1}, 1}}};
  const VirtualPacks packs(plan, histogram, 42, 3);
  std::vector<std::uint64_t> all;
  for (std::uint64_t index = 0; index < packs.num_packs(); ++index) packs.append_pack(index, all);
  EXPECT_EQ(all, (std::vector<std::uint64_t>{13, 9, 1, 12, 8, 5, 10, 6, 0, 11, 7, 2, 4, 3}));
}

TEST(VirtualPacks, RefuseAPlanOfOtherSequences) {
  const PackingPlan plan{.capacity = 6, .depth = 3, .patterns = {{{3, 2, 1}, 4}}};
  EXPECT_THROW(VirtualPacks(plan, LengthHistogram{{0, 4, 4, 5}}, 0, 0), base::InternalError);
  EXPECT_THROW(VirtualPacks(plan, LengthHistogram{{0, 4, 4}}, 0, 0), base::InternalError);
  const VirtualPacks packs(plan, LengthHistogram{{0, 4, 4, 4}}, 0, 0);
  EXPECT_THROW(packs.pack(4), base::InternalError);
}

}  // namespace
}  // namespace plenum::packing

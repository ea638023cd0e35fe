#include "plenum/packing/streaming.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/packing/packers.h"

#include "tests/packing/sample_histograms.h"

namespace plenum::packing {
namespace {

TEST(StreamingPacker, ClosesAPackWhenItIsFull) {
  StreamingPacker packer(10, 10, 4);
  EXPECT_FALSE(packer.add({.id = 1, .length = 6}));
  const auto closed = packer.add({.id = 2, .length = 4});
  ASSERT_TRUE(closed);
  ASSERT_EQ(closed->size(), 2u);
  EXPECT_EQ((*closed)[0].id, 1u);
  EXPECT_EQ((*closed)[1].id, 2u);
  EXPECT_TRUE(packer.finish().empty());
}

TEST(StreamingPacker, ClosesAPackAtItsDepth) {
  StreamingPacker packer(10, 2, 4);
  EXPECT_FALSE(packer.add({.id = 1, .length = 1}));
  const auto closed = packer.add({.id = 2, .length = 8});
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->size(), 2u);
}

TEST(StreamingPacker, ClosesTheFullestWhenTooManyAreOpen) {
  StreamingPacker packer(10, 10, 1);
  EXPECT_FALSE(packer.add({.id = 1, .length = 7}));
  const auto closed = packer.add({.id = 2, .length = 6});
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->front().id, 1u);
}

TEST(StreamingPacker, JoinsWhatIsOpenAtTheEnd) {
  StreamingPacker packer(10, 3, 8);
  // Both rather open a pack than share one: opening changes the sum of squares by 1, sharing by 2.
  EXPECT_FALSE(packer.add({.id = 1, .length = 2}));
  EXPECT_FALSE(packer.add({.id = 2, .length = 3}));
  const std::vector<StreamedPack> packs = packer.finish();
  ASSERT_EQ(packs.size(), 1u);
  EXPECT_EQ(packs[0].size(), 2u);
  EXPECT_TRUE(packer.finish().empty());
}

TEST(StreamingPacker, EmitsEverySequenceOnceAndHoldsFewPacksOpen) {
  for (std::uint64_t index = 0; index < 500; ++index) {
    const PackingProblem problem = shaped_problem(index, 30);
    const auto max_open = static_cast<std::int64_t>(1 + index % 7);
    StreamingPacker packer(problem.capacity, problem.depth, max_open);
    const base::RandomFunction random(index, base::Purpose::Order);
    std::multiset<std::uint64_t> seen;
    const auto take = [&](const StreamedPack& pack) {
      std::int64_t tokens = 0;
      for (const StreamedSequence& sequence : pack) {
        tokens += sequence.length;
        seen.insert(sequence.id);
      }
      ASSERT_LE(tokens, problem.capacity);
      ASSERT_LE(static_cast<std::int64_t>(pack.size()), problem.depth);
    };
    for (std::uint64_t id = 0; id < 300; ++id) {
      const auto length = static_cast<std::int64_t>(
          1 + base::to_range(random(id), static_cast<std::uint64_t>(problem.capacity)));
      if (const auto closed = packer.add({id, length})) take(*closed);
    }
    const std::vector<StreamedPack> rest = packer.finish();
    ASSERT_LE(static_cast<std::int64_t>(rest.size()), max_open);
    for (const StreamedPack& pack : rest) take(pack);
    ASSERT_EQ(seen.size(), 300u);
    for (std::uint64_t id = 0; id < 300; ++id) ASSERT_EQ(seen.count(id), 1u);
  }
}

TEST(StreamingPacker, RefusesLengthsThatDoNotFit) {
  StreamingPacker packer(10, 2, 4);
  EXPECT_THROW(packer.add({.id = 0, .length = 11}), base::InternalError);
  EXPECT_THROW(packer.add({.id = 0, .length = 0}), base::InternalError);
}

// What the header states, on the histogram that is small enough for a test.
TEST(PackStreaming, FillsSquadTo98Percent) {
  const PackingProblem problem = published_problem("squad_1_1_384", 0);
  const PackingPlan plan = pack_streaming(problem, {.max_open_packs = 1024, .seed = 1});
  EXPECT_EQ(plan.num_packs(), 40361u);
  EXPECT_GT(packing_efficiency(plan, problem.histogram.num_tokens()), 0.983);
}

TEST(PackStreaming, DependsOnTheSeed) {
  const PackingProblem problem = published_problem("squad_1_1_384", 0);
  EXPECT_NE(pack_streaming(problem, {.max_open_packs = 64, .seed = 1}).num_packs(),
            pack_streaming(problem, {.max_open_packs = 64, .seed = 2}).num_packs());
}

}  // namespace
}  // namespace plenum::packing

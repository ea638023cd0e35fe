#include "plenum/kernels/cuda/attention/attention_tiles.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace plenum::kernels::cuda {
namespace {

TEST(AttentionTiles, CoverEveryRowOfEverySequenceOnce) {
  const std::vector<std::int32_t> starts = {0, 5, 1000, 1700};
  const std::vector<std::int32_t> lengths = {3, 900, 513, 512};
  std::vector<int> visits(2212, 0);
  for (const AttentionTile& tile : make_attention_tiles(starts, lengths, 512)) {
    EXPECT_EQ(tile.start, starts[tile.sequence]);
    EXPECT_EQ(tile.length, lengths[tile.sequence]);
    for (std::int32_t row = tile.first; row < std::min(tile.first + 512, tile.length); ++row)
      ++visits[tile.start + row];
  }
  for (std::size_t s = 0; s < starts.size(); ++s)
    for (std::int32_t row = 0; row < lengths[s]; ++row) EXPECT_EQ(visits[starts[s] + row], 1);
  EXPECT_EQ(std::count(visits.begin(), visits.end(), 0), 2212 - 3 - 900 - 513 - 512);
}

TEST(AttentionTiles, ComeInTheOrderOfDecreasingLengthThenOfSequenceAndRow) {
  const std::vector<std::int32_t> starts = {0, 10, 200, 300};
  const std::vector<std::int32_t> lengths = {10, 130, 10, 130};
  std::vector<std::vector<std::int32_t>> order;
  for (const AttentionTile& tile : make_attention_tiles(starts, lengths, 128))
    order.push_back({tile.sequence, tile.first});
  EXPECT_EQ(order,
            (std::vector<std::vector<std::int32_t>>{{1, 0}, {1, 128}, {3, 0}, {3, 128}, {0, 0}, {2, 0}}));
}

TEST(AttentionGaps, AreTheRowsBetweenAndBehindSequences) {
  const std::vector<AttentionGap> gaps =
      make_attention_gaps(std::vector<std::int32_t>{2, 8, 12}, std::vector<std::int32_t>{6, 1, 4}, 20);
  ASSERT_EQ(gaps.size(), 3);
  EXPECT_EQ(gaps[0].start, 0);
  EXPECT_EQ(gaps[0].length, 2);
  EXPECT_EQ(gaps[1].start, 9);
  EXPECT_EQ(gaps[1].length, 3);
  EXPECT_EQ(gaps[2].start, 16);
  EXPECT_EQ(gaps[2].length, 4);
}

TEST(AttentionGaps, AreNoneWhereSequencesFillTheRows) {
  EXPECT_TRUE(
      make_attention_gaps(std::vector<std::int32_t>{0, 6}, std::vector<std::int32_t>{6, 2}, 8).empty());
}

}  // namespace
}  // namespace plenum::kernels::cuda

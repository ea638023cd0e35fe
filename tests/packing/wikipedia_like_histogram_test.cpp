#include "tests/support/wikipedia_like_histogram.h"

#include <gtest/gtest.h>

namespace plenum::packing {
namespace {

/// The least length that at least this share of the sequences does not exceed.
std::int64_t quantile(const LengthHistogram& histogram, double share) {
  std::uint64_t sum = 0;
  for (std::size_t length = 0; length < histogram.counts.size(); ++length) {
    sum += histogram.counts[length];
    if (static_cast<double>(sum) >= share * static_cast<double>(histogram.num_sequences()))
      return static_cast<std::int64_t>(length);
  }
  return -1;
}

TEST(WikipediaLikeHistogram, HasThePublishedMeanAndQuantiles) {
  const LengthHistogram histogram = test::wikipedia_like_histogram(512, 16'279'552);
  EXPECT_EQ(histogram.num_sequences(), 16'279'552U);
  EXPECT_EQ(histogram.longest(), 512);
  const double mean = static_cast<double>(histogram.num_tokens()) / 16'279'552;
  EXPECT_NEAR(mean, 255.8, 0.01 * 255.8);
  EXPECT_NEAR(static_cast<double>(histogram.counts[512]) / 16'279'552, 0.234, 0.002);
  EXPECT_EQ(quantile(histogram, 0.05), 36);
  EXPECT_EQ(quantile(histogram, 0.25), 84);
  EXPECT_EQ(quantile(histogram, 0.50), 204);
  EXPECT_EQ(quantile(histogram, 0.75), 484);
  EXPECT_EQ(quantile(histogram, 0.95), 512);
}

TEST(WikipediaLikeHistogram, ScalesToOtherLengthsAndKeepsEverySequence) {
  for (const std::int64_t max_length : {16, 100, 128, 8192}) {
    for (const std::uint64_t num_sequences : {1U, 7U, 1000U}) {
      const LengthHistogram histogram = test::wikipedia_like_histogram(max_length, num_sequences);
      EXPECT_EQ(histogram.num_sequences(), num_sequences);
      EXPECT_EQ(histogram.counts[0] + histogram.counts[1] + histogram.counts[2], 0U);
    }
    const LengthHistogram histogram = test::wikipedia_like_histogram(max_length, 100'000);
    const double mean = static_cast<double>(histogram.num_tokens()) / 100'000;
    EXPECT_NEAR(mean / static_cast<double>(max_length), 0.5, 0.04);
  }
}

}  // namespace
}  // namespace plenum::packing

#include "plenum/report/sampling.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>

namespace plenum::report {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Le;

TEST(SampleExtremes, KeepsEverythingThereIsRoomFor) {
  EXPECT_THAT(sample_extremes(std::vector<double>{3, 1, 2}, 4), ElementsAre(0, 1, 2));
  EXPECT_THAT(sample_extremes(std::vector<double>{}, 4), ElementsAre());
}

TEST(SampleExtremes, KeepsTheOneValueThatStandsOutOfAMillion) {
  std::vector<double> values(1'000'000, 1);
  values[123'456] = 50;
  values[876'543] = -50;
  const std::vector<std::size_t> kept = sample_extremes(values, 1000);
  EXPECT_LE(kept.size(), 1000U);
  EXPECT_THAT(kept, Contains(123'456U));
  EXPECT_THAT(kept, Contains(876'543U));
  EXPECT_EQ(kept.front(), 0U);
  EXPECT_EQ(kept.back(), 999'999U);
  EXPECT_TRUE(std::ranges::is_sorted(kept));
}

TEST(SampleExtremes, KeepsTheExtremesOfEveryStretch) {
  std::vector<double> values;
  for (int i = 0; i < 10'000; ++i) values.push_back(std::sin(0.01 * i) + 0.001 * (i * 7919 % 1000));
  const std::vector<std::size_t> kept = sample_extremes(values, 200);
  EXPECT_LE(kept.size(), 200U);
  const auto [least, greatest] = std::ranges::minmax_element(values);
  EXPECT_THAT(kept, Contains(static_cast<std::size_t>(least - values.begin())));
  EXPECT_THAT(kept, Contains(static_cast<std::size_t>(greatest - values.begin())));
}

TEST(SampleExtremes, LeavesOutWhatIsNotFinite) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(sample_extremes(std::vector<double>{kNan, 1, kInfinity, 2, kNan}, 4), ElementsAre(1, 3));
  std::vector<double> many(1000, kNan);
  for (std::size_t i = 0; i < many.size(); i += 3) many[i] = static_cast<double>(i);
  for (const std::size_t i : sample_extremes(many, 20)) EXPECT_TRUE(std::isfinite(many[i])) << i;
}

TEST(Smooth, IsTheMeanOfAWindow) {
  EXPECT_THAT(smooth(std::vector<double>{1, 2, 6, 4, 5}, 1), ElementsAre(1, 3, 4, 5, 4.5));
  EXPECT_THAT(smooth(std::vector<double>{1, 2, 3}, 0), ElementsAre(1, 2, 3));
}

TEST(Smooth, PassesOverWhatIsNotFinite) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> smoothed = smooth(std::vector<double>{2, kNan, 4, kNan, kNan}, 1);
  EXPECT_DOUBLE_EQ(smoothed[1], 3);
  EXPECT_DOUBLE_EQ(smoothed[2], 4);
  EXPECT_TRUE(std::isnan(smoothed[4]));
}

TEST(Smooth, ForgetsAnOutlierBehindIt) {
  std::vector<double> values(100, 0.5);
  values[20] = 1e20;
  const std::vector<double> smoothed = smooth(values, 3);
  EXPECT_EQ(smoothed[10], 0.5);
  EXPECT_EQ(smoothed[20], 1e20 / 7);
  EXPECT_EQ(smoothed[50], 0.5);
}

TEST(Smooth, LeavesAConstantAsItIs) {
  const std::vector<double> values(300, 0.1);
  EXPECT_THAT(smooth(values, 6), Each(testing::DoubleEq(0.1)));
}

}  // namespace
}  // namespace plenum::report

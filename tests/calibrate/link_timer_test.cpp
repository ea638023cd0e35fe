#include "plenum/calibrate/link_timer.h"

#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::calibrate {
namespace {

TEST(FitLine, FindsALineThatThePointsLieOn) {
  const std::vector<double> x = {1e3, 1e4, 1e5, 1e6, 1e7};
  std::vector<double> seconds;
  for (const double bytes : x) seconds.push_back(20e-6 + bytes / 3e9);
  const Line line = fit_line(x, seconds);
  EXPECT_NEAR(line.offset, 20e-6, 1e-12);
  EXPECT_NEAR(line.slope, 1 / 3e9, 1e-17);
  EXPECT_NEAR(line.error, 0, 1e-9);
}

TEST(FitLine, CountsShortTimesAsMuchAsLongOnes) {
  // The last is off by half: with absolute distances the offset would go with it.
  const std::vector<double> x = {1e2, 1e3, 1e4, 1e5, 1e9};
  std::vector<double> seconds;
  for (const double bytes : x) seconds.push_back(20e-6 + bytes / 3e9);
  seconds.back() *= 1.5;
  EXPECT_NEAR(fit_line(x, seconds).offset, 20e-6, 2e-6);
}

TEST(FitLine, HasNeitherOffsetNorSlopeBelowZero) {
  EXPECT_EQ(fit_line(std::vector<double>{1, 2}, std::vector<double>{1, 3}).offset, 0);
  EXPECT_EQ(fit_line(std::vector<double>{1, 2}, std::vector<double>{3, 1}).slope, 0);
  EXPECT_EQ(fit_line(std::vector<double>{5, 5}, std::vector<double>{3, 3}).offset, 0);
}

TEST(FitLine, RefusesTimesThatAreNone) {
  EXPECT_THROW(fit_line(std::vector<double>{1, 2}, std::vector<double>{1, 0}), base::InternalError);
  EXPECT_THROW(fit_line(std::vector<double>{1}, std::vector<double>{1}), base::InternalError);
}

TEST(MeasureLink, MeasuresAllOperationsBetweenThreads) {
  for (const std::size_t num_ranks : {2U, 3U}) {
    const auto links = measure_local_link(num_ranks, {.sizes = {1024, 65536}, .seconds = 0});
    ASSERT_EQ(links.size(), kNumLinkOperations);
    for (std::size_t i = 0; i < links.size(); ++i) {
      EXPECT_EQ(links[i].operation, static_cast<LinkOperation>(i));
      EXPECT_GE(links[i].link.latency_seconds, 0);
      EXPECT_GT(links[i].link.bytes_per_second, 0);
    }
  }
}

TEST(MeasureLink, RefusesARankAlone) {
  EXPECT_THROW(measure_local_link(1), base::InternalError);
}

}  // namespace
}  // namespace plenum::calibrate

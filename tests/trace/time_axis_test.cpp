#include "plenum/trace/time_axis.h"

#include <gtest/gtest.h>

namespace plenum::trace {
namespace {

std::string labels(double from, double to, std::size_t most) {
  std::string text;
  for (const Tick& tick : round_ticks(from, to, most)) text += tick.label + " ";
  return text;
}

TEST(RoundTicks, StandAtRoundTimes) {
  EXPECT_EQ(labels(0, 0.55, 6), "0 100 200 300 400 500 ");
  EXPECT_EQ(labels(0, 0.5, 5), "0 100 200 300 400 500 ");
  EXPECT_EQ(labels(0, 0.55, 3), "0 200 400 ");
  EXPECT_EQ(labels(0, 36, 4), "0 10 20 30 ");
  EXPECT_EQ(labels(0, 0.0012, 4), "0.0 0.5 1.0 ");
  EXPECT_EQ(labels(0, 5e-6, 5), "0 1 2 3 4 5 ");
}

TEST(RoundTicks, CountFromTheBeginningOfTheTimelineAlsoInAPart) {
  EXPECT_EQ(labels(0.130, 0.180, 5), "130 140 150 160 170 180 ");
  EXPECT_EQ(labels(3.0001, 3.0004, 3), "3000.1 3000.2 3000.3 3000.4 ");
}

TEST(RoundTicks, AreNoneOverNothing) {
  EXPECT_TRUE(round_ticks(0, 0, 5).empty());
  EXPECT_TRUE(round_ticks(1, 0.5, 5).empty());
  EXPECT_TRUE(round_ticks(0, 1, 0).empty());
}

TEST(FormatDuration, PicksTheUnit) {
  EXPECT_EQ(format_duration(0.1834), "183.4 ms");
  EXPECT_EQ(format_duration(0.0012), "1.200 ms");
  EXPECT_EQ(format_duration(12.5), "12.50 s");
  EXPECT_EQ(format_duration(3e-6), "3.000 µs");
  EXPECT_EQ(format_duration(0), "0 ms");
  EXPECT_EQ(format_duration(-1e-17), "0 ms");
  EXPECT_EQ(format_duration(0.0099999999), "10.00 ms");
  EXPECT_EQ(format_duration(2.4567), "2457 ms");
  EXPECT_EQ(format_duration(-0.05), "-50.00 ms");
}

}  // namespace
}  // namespace plenum::trace

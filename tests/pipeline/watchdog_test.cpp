#include "plenum/pipeline/watchdog.h"

#include <gtest/gtest.h>

namespace plenum::pipeline {
namespace {

using namespace std::chrono_literals;

TEST(Watchdog, GivesAnActionTenTimesItsLongestSoFarAndHalfAMinute) {
  EXPECT_EQ(Watchdog::limit_after(0s, 30min), 30min) << "the first time";
  EXPECT_EQ(Watchdog::limit_after(10ms, 30min), 30s);
  EXPECT_EQ(Watchdog::limit_after(12s, 30min), 120s);
  EXPECT_EQ(Watchdog::limit_after(1h, 30min), 30min);
  EXPECT_EQ(Watchdog::limit_after(10ms, 2s), 2s);
}

}  // namespace
}  // namespace plenum::pipeline

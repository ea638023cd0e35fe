#include "plenum/cli/stop_signals.h"

#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

namespace plenum::cli {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr auto kSilent = [](int) {};

/// Each test in a process of its own, which sends signals to itself and ends.
class StopSignalsDeathTest : public testing::Test {
 protected:
  StopSignalsDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static void send(int signal) { ::kill(::getpid(), signal); }

  static void wait_for_stop(const StopSignals& signals) {
    while (!signals.token().stop_requested()) std::this_thread::sleep_for(milliseconds(1));
  }
};

TEST_F(StopSignalsDeathTest, AskForAStopHoweverOftenTheyCome) {
  const auto stop_by = [](int first) {
    {
      const StopSignals signals(kSilent, hours(1));
      send(first);
      wait_for_stop(signals);
      for (const int again : {SIGTERM, SIGHUP, SIGINT, first}) send(again);
    }
    ::_exit(0);
  };
  for (const int first : {SIGTERM, SIGHUP, SIGINT})
    EXPECT_EXIT(stop_by(first), testing::ExitedWithCode(0), "");
}

TEST_F(StopSignalsDeathTest, EndTheProcessAtOnceOnlyForAPersonWhoInsists) {
  const auto insist_by = [](int second) {
    {
      const StopSignals signals(kSilent, milliseconds(0));
      send(SIGTERM);
      wait_for_stop(signals);
      send(second);
    }
    ::_exit(0);
  };
  EXPECT_EXIT(insist_by(SIGINT), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(insist_by(SIGTERM), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(insist_by(SIGHUP), testing::ExitedWithCode(0), "");
}

TEST_F(StopSignalsDeathTest, AreToldOfOnceWithTheOneThatAskedFirst) {
  const auto tell = [] {
    int told = 0;
    {
      const StopSignals signals([&](int signal) { told = 100 * told + signal; }, hours(1));
      send(SIGHUP);
      wait_for_stop(signals);
      send(SIGTERM);
      send(SIGINT);
    }
    ::_exit(told);
  };
  EXPECT_EXIT(tell(), testing::ExitedWithCode(SIGHUP), "");
}

TEST_F(StopSignalsDeathTest, StayIgnoredWhereTheyWere) {
  const auto ignore = [](int ignored) {
    std::signal(ignored, SIG_IGN);
    bool is_stopped = false;
    {
      const StopSignals signals;
      send(ignored);
      std::this_thread::sleep_for(milliseconds(50));
      is_stopped = signals.token().stop_requested();
    }
    ::_exit(is_stopped ? 1 : 0);
  };
  for (const int ignored : {SIGTERM, SIGHUP, SIGINT})
    EXPECT_EXIT(ignore(ignored), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace plenum::cli

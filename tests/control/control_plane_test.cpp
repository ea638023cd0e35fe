#include "plenum/control/control_plane.h"

#include <atomic>
#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/control/network_address.h"
#include "plenum/control/rendezvous_file.h"

#include "tests/control/planes.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void expect_nothing_wrong(const std::vector<RankResult>& results) {
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    EXPECT_EQ(results[rank].error, "") << rank;
    EXPECT_THAT(results[rank].failures, IsEmpty()) << rank;
  }
}

TEST(ControlPlane, ExchangesBytesBetweenAllRanks) {
  const test::TemporaryDirectory directory;
  expect_nothing_wrong(run_ranks(4, quick_options(directory.path()), [](TestRank it) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(it.plane.broadcast(it.rank == 0 ? "id" + std::to_string(i) : "mine"),
                "id" + std::to_string(i));
      const std::vector<std::string> gathered = it.plane.gather(std::to_string(it.rank));
      if (it.rank == 0) {
        EXPECT_THAT(gathered, ElementsAre("0", "1", "2", "3"));
      } else {
        EXPECT_THAT(gathered, IsEmpty());
      }
      it.plane.barrier();
    }
    it.plane.goodbye();
  }));
}

TEST(ControlPlane, CarriesUpTo64KilobytesPerRank) {
  const test::TemporaryDirectory directory;
  expect_nothing_wrong(run_ranks(3, quick_options(directory.path()), [](TestRank it) {
    const std::string bytes(kMostExchangeBytes, static_cast<char>('a' + it.rank));
    EXPECT_EQ(it.plane.broadcast(bytes), std::string(kMostExchangeBytes, 'a'));
    const std::vector<std::string> gathered = it.plane.gather(bytes);
    if (it.rank == 0) {
      EXPECT_EQ(gathered.at(2), std::string(kMostExchangeBytes, 'c'));
    }
    it.plane.goodbye();
  }));
}

TEST(ControlPlane, LetsNoRankPassABarrierBeforeAllHaveCome) {
  const test::TemporaryDirectory directory;
  std::atomic<int> num_come{0};
  expect_nothing_wrong(run_ranks(3, quick_options(directory.path()), [&](TestRank it) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30 * it.rank));
    ++num_come;
    it.plane.barrier();
    EXPECT_EQ(num_come, 3);
    it.plane.goodbye();
  }));
}

TEST(ControlPlane, OfAProcessOnItsOwnNeedsNothing) {
  ControlPlane plane(Launch{}, {.run_directory = "/nowhere"}, [](const RankFailure&) {});
  plane.compare({{"seed", "1"}});
  EXPECT_EQ(plane.broadcast("x"), "x");
  EXPECT_THAT(plane.gather("x"), ElementsAre("x"));
  plane.barrier();
  plane.say("step 1");
  plane.report_failure("nobody hears it");
  EXPECT_EQ(plane.clock_offset().seconds, 0);
  plane.goodbye();
}

TEST(Compare, AcceptsEqualFingerprints) {
  const test::TemporaryDirectory directory;
  expect_nothing_wrong(run_ranks(3, quick_options(directory.path()), [](TestRank it) {
    it.plane.compare({{"seed", "1"}, {"dataset", "xxh3:1"}});
    it.plane.barrier();
    it.plane.goodbye();
  }));
}

TEST(Compare, RefusesOnAllRanksNamingRankHostAndBothValues) {
  const test::TemporaryDirectory directory;
  const auto results = run_ranks(4, quick_options(directory.path()), [](TestRank it) {
    Fingerprint fingerprint = {{"seed", "1"}, {"layout", "packed"}, {"build", "abc"}, {"tp", "2"}};
    if (it.rank == 2) fingerprint = {{"seed", "7"}, {"layout", ""}, {"tp", "3"}, {"extra", "on"}};
    it.plane.compare(fingerprint);
  });
  for (const RankResult& result : results) {
    EXPECT_EQ(result.error,
              "rank 2 on " + host_name() + " was started differently from rank 0 on " + host_name() +
                  ": seed is 7 and not 1, layout is empty and not packed, build is not there and not abc, "
                  "and 2 more");
    EXPECT_THAT(result.failures, IsEmpty()) << "a refusal is no failure";
  }
}

TEST(Failure, ReportedByARankReachesEverybodyOnce) {
  const test::TemporaryDirectory directory;
  const auto results = run_ranks(4, quick_options(directory.path()), [](TestRank it) {
    it.plane.say(it.rank == 3 ? "step 12, B1.2" : "step 12, waits for rank 3");
    it.plane.barrier();
    if (it.rank == 3) {
      it.plane.report_failure("out of\nmemory");
      it.plane.report_failure("a second one");
    }
    it.failures.wait();
    EXPECT_TRUE(it.plane.failure().has_value());
    EXPECT_THROW(it.plane.barrier(), RankFailed);
  });
  for (const RankResult& result : results) {
    ASSERT_EQ(result.failures.size(), 1U);
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(failure_text(result.failures[0]),
              "rank 3 on " + host_name() +
                  ": out of memory; its last action: step 12, B1.2; meanwhile ranks 0, 1, 2: step 12, waits "
                  "for rank 3");
  }
}

/// The first heartbeat is the last that a test lives to see.
ControlOptions without_heartbeats(const std::string& run_directory) {
  ControlOptions options = quick_options(run_directory);
  options.heartbeat_interval = 10 * kLongTime;
  options.dead_after = 10 * options.heartbeat_interval;
  return options;
}

TEST(Failure, SaysWhatARankDidThatEndsBeforeItsNextHeartbeat) {
  const test::TemporaryDirectory directory;
  const auto results = run_ranks(2, without_heartbeats(directory.path()), [](TestRank it) {
    it.plane.barrier();
    it.plane.say("step 12");
    it.plane.barrier();
    if (it.rank == 0) it.failures.wait();
  });
  ASSERT_EQ(results[0].failures.size(), 1U);
  EXPECT_EQ(results[0].failures[0].last_action, "step 12");
}

TEST(Failure, WithWhatTheOthersDoReachesEverybodyBeforeTheNextHeartbeat) {
  const test::TemporaryDirectory directory;
  const auto results = run_ranks(4, without_heartbeats(directory.path()), [](TestRank it) {
    it.plane.barrier();
    if (it.rank == 3) return;
    it.plane.say("step 12");
    it.failures.wait();
  });
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(results[rank].failures.size(), 1U);
    EXPECT_EQ(results[rank].failures[0].rank.value, 3U);
    EXPECT_EQ(results[rank].failures[0].others, "ranks 0, 1, 2: step 12");
  }
}

TEST(Failure, OfRank0ReachesEverybodyOnce) {
  const test::TemporaryDirectory directory;
  const auto results = run_ranks(3, quick_options(directory.path()), [](TestRank it) {
    it.plane.barrier();
    if (it.rank == 0) it.plane.report_failure("the disk is full");
    it.failures.wait();
  });
  for (const RankResult& result : results) {
    ASSERT_EQ(result.failures.size(), 1U);
    EXPECT_EQ(result.failures[0].rank.value, 0U);
    EXPECT_EQ(result.failures[0].what, "the disk is full");
  }
}

TEST(Failure, IsToldEvenIfTheRankThatReportsItEndsAtOnce) {
  for (const std::uint32_t failing : {0U, 1U}) {
    const test::TemporaryDirectory directory;
    const auto results = run_ranks(3, quick_options(directory.path()), [&](TestRank it) {
      it.plane.barrier();
      if (it.rank == failing) {
        it.plane.report_failure("a kernel failed");
      } else {
        it.failures.wait();
      }
    });
    for (const RankResult& result : results) {
      ASSERT_EQ(result.failures.size(), 1U);
      EXPECT_EQ(result.failures[0].rank.value, failing);
      EXPECT_EQ(result.failures[0].what, "a kernel failed");
    }
  }
}

TEST(Failure, EndsExchangesThatWaitForTheRank) {
  const test::TemporaryDirectory directory;
  const auto results = run_ranks(3, quick_options(directory.path()), [](TestRank it) {
    it.plane.barrier();
    if (it.rank == 1) {
      it.plane.report_failure("no space");
    } else {
      it.plane.barrier();
    }
  });
  EXPECT_THAT(results[0].error, HasSubstr("rank 1 on " + host_name() + ": no space"));
  EXPECT_EQ(results[1].error, "");
  EXPECT_THAT(results[2].error, HasSubstr("rank 1 on " + host_name() + ": no space"));
}

TEST(Failure, IsARankThatLeavesWithoutAGoodbye) {
  for (const std::uint32_t leaving : {0U, 2U}) {
    const test::TemporaryDirectory directory;
    const auto results = run_ranks(3, quick_options(directory.path()), [&](TestRank it) {
      it.plane.barrier();
      if (it.rank != leaving) it.failures.wait();
    });
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      if (rank == leaving) continue;
      ASSERT_EQ(results[rank].failures.size(), 1U) << rank;
      EXPECT_EQ(results[rank].failures[0].rank.value, leaving);
      EXPECT_THAT(results[rank].failures[0].what, HasSubstr("its connection closed without a goodbye"));
    }
  }
}

TEST(Goodbye, OfRank0TellsOfAFailureThatComesInBetween) {
  const test::TemporaryDirectory directory;
  const auto results = run_ranks(3, quick_options(directory.path()), [](TestRank it) {
    it.plane.barrier();
    if (it.rank == 0) {
      it.plane.goodbye();
    } else if (it.rank == 1) {
      it.plane.report_failure("no space");
    } else {
      it.failures.wait();
    }
  });
  EXPECT_THAT(results[0].error, HasSubstr("rank 1 on " + host_name() + ": no space"));
  for (const RankResult& result : results) EXPECT_EQ(result.failures.size(), 1U);
}

TEST(Goodbye, OfSomeRanksDisturbsNoOther) {
  const test::TemporaryDirectory directory;
  const ControlOptions options = quick_options(directory.path());
  expect_nothing_wrong(run_ranks(4, options, [&](TestRank it) {
    it.plane.barrier();
    if (it.rank >= 2) return it.plane.goodbye();
    std::this_thread::sleep_for(options.dead_after + std::chrono::milliseconds(500));
    it.plane.goodbye();
  }));
}

TEST(Heartbeats, KeepARankAliveWhoseOtherThreadsAreBusy) {
  const test::TemporaryDirectory directory;
  ControlOptions options = quick_options(directory.path());
  options.dead_after = std::chrono::milliseconds(1500);
  expect_nothing_wrong(run_ranks(2, options, [&](TestRank it) {
    it.plane.barrier();
    std::this_thread::sleep_for(options.dead_after + std::chrono::milliseconds(500));
    it.plane.barrier();
    it.plane.goodbye();
  }));
}

TEST(ControlPlane, NamesTheRankThatDoesNotComeToABarrier) {
  const test::TemporaryDirectory directory;
  const auto results = run_ranks(3, quick_options(directory.path()), [](TestRank it) {
    if (it.rank == 2) it.plane.say("reading the dataset");
    it.plane.barrier();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (it.rank == 2) return it.failures.wait();
    if (it.rank == 0) {
      test::expect_user_error([&] { it.plane.barrier(std::chrono::milliseconds(300)); },
                              "not all ranks came to the barrier within 300.0 ms: missing rank 2 on " +
                                  host_name() + ", which last said: reading the dataset");
      it.plane.report_failure("a rank is missing");
    } else {
      EXPECT_THROW(it.plane.barrier(), RankFailed);
    }
  });
  for (const RankResult& result : results) EXPECT_EQ(result.error, "");
}

TEST(ControlPlane, NamesRanksThatAreOutOfStep) {
  const test::TemporaryDirectory directory;
  const auto results = run_ranks(2, quick_options(directory.path()), [](TestRank it) {
    if (it.rank == 0) {
      it.plane.barrier();
    } else {
      it.plane.gather("x");
    }
  });
  EXPECT_THAT(results[0].error,
              HasSubstr("ranks do not exchange the same: rank 1 is at gather 0, rank 0 at barrier 0"));
}

TEST(ControlPlane, SaysThatARankHasEndedThatShouldCome) {
  const test::TemporaryDirectory directory;
  const auto results = run_ranks(2, quick_options(directory.path()), [](TestRank it) {
    if (it.rank == 1) return it.plane.goodbye();
    it.plane.barrier();
  });
  EXPECT_THAT(results[0].error, HasSubstr("rank 1 on " + host_name() + " has ended"));
  EXPECT_EQ(results[1].error, "");
}

TEST(ClockOffset, OfTwoRanksOfOneHostIsZeroWithinItsError) {
  const test::TemporaryDirectory directory;
  expect_nothing_wrong(run_ranks(2, quick_options(directory.path()), [](TestRank it) {
    const auto until = std::chrono::steady_clock::now() + kLongTime;
    while (std::isinf(it.plane.clock_offset().error_seconds) && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const ClockOffset offset = it.plane.clock_offset();
    EXPECT_LE(std::abs(offset.seconds), offset.error_seconds);
    EXPECT_FALSE(std::isinf(offset.error_seconds));
    it.plane.barrier();
    it.plane.goodbye();
  }));
}

TEST(OffsetMeasurement, BelievesTheFastestAnswer) {
  OffsetMeasurement measurement;
  for (int i = 0; i < OffsetMeasurement::kNumPings - 1; ++i)
    EXPECT_FALSE(measurement.add(1000, 900'000, 801'000).has_value());
  // 5 ms ahead, 2 us on the way.
  const std::optional<ClockOffset> offset = measurement.add(10'000, 5'011'000, 12'000);
  ASSERT_TRUE(offset.has_value());
  EXPECT_DOUBLE_EQ(offset->seconds, 5e-3);
  EXPECT_NEAR(offset->error_seconds, 1e-6, 2e-9);
}

TEST(AwakeClock, StopsWhileNobodyLooksAtIt) {
  AwakeClock clock;
  const auto begin = AwakeClock::Clock::now();
  const auto second = std::chrono::seconds(1);
  clock.advance(begin + second, 2 * second);
  clock.advance(begin + 100 * second, 2 * second);
  clock.advance(begin + 101 * second, 2 * second);
  EXPECT_LE(clock.now(), 4 * second + std::chrono::milliseconds(100));
  EXPECT_GE(clock.now(), 3 * second);
}

TEST(Rendezvous, EndsListeningAndRemovesTheFileWhenAllAreThere) {
  const test::TemporaryDirectory directory;
  const ControlOptions options = quick_options(directory.path());
  FailureLog failures;
  std::thread centre([&] {
    ControlPlane plane(launch_of(0, 2), options, failures.listener());
    plane.barrier();
    EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
    plane.barrier();
    plane.goodbye();
  });
  FoundRendezvous found;
  while (!found.rendezvous) found = find_rendezvous(directory.path());
  const Rendezvous place = *found.rendezvous;
  EXPECT_EQ(place.address, "127.0.0.1");
  EXPECT_EQ(std::filesystem::status(rendezvous_path(directory.path())).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  ControlPlane plane(launch_of(1, 2), options, failures.listener());
  plane.barrier();
  EXPECT_FALSE(connect_to(place.address, place.port, kLongTime).is_open());
  plane.barrier();
  plane.goodbye();
  centre.join();
  EXPECT_THAT(failures.all(), IsEmpty());
}

TEST(Options, AreRefusedWhereADeathWouldBeTooEarly) {
  test::expect_user_error(
      [] {
        const ControlPlane plane(Launch{},
                                 {.run_directory = ".", .dead_after = std::chrono::milliseconds(500)},
                                 [](const RankFailure&) {});
      },
      "three missing heartbeats");
}

}  // namespace
}  // namespace plenum::control

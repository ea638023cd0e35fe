#include "plenum/comm/local/local_world.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "tests/comm/ranks.h"

namespace plenum::comm {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(LocalCommunicator, BarrierWaitsForAll) {
  std::atomic<int> num_arrived = 0;
  EXPECT_THAT(run_ranks(5,
                        [&](Communicator& all) {
                          ++num_arrived;
                          all.start_barrier(0).wait();
                          EXPECT_EQ(num_arrived, 5);
                        }),
              Each(""));
}

TEST(LocalCommunicator, RefusesARankThatComesTwice) {
  local::LocalWorld world(2);
  const std::unique_ptr<Communicator> one = world.communicator({0});
  const std::unique_ptr<Communicator> again = world.communicator({0});
  const Completion first = one->start_barrier(0);
  try {
    again->start_barrier(0).wait();
    FAIL() << "rank 1 has not come";
  } catch (const base::InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 joins a collective twice"));
  }
}

TEST(LocalAbort, WakesEveryoneAndSaysWhy) {
  const std::vector<std::string> errors = run_ranks(5, [](Communicator& all) {
    const std::unique_ptr<Communicator> group = all.duplicate();
    double value = 0;
    const Elements one = elements_of(std::span(&value, 1));
    switch (all.index()) {
      case 0:
        return all.start_receive(4, 1, one).wait();
      case 1:
        return all.start_all_reduce(one, 0).wait();
      case 2:
        return group->start_barrier(0).wait();
      case 3:
        while (true) {  // polls
          Completion never = group->start_receive(0, 9, one);
          while (!never.test()) std::this_thread::yield();
        }
      default:
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        all.abort_all(all.rank_of(4), "the disk is full");
        return group->start_send(0, 1, one).wait();
    }
  });
  EXPECT_THAT(errors, Each("rank 4 failed: the disk is full"));
}

TEST(LocalAbort, KeepsTheFirstReason) {
  local::LocalWorld world(2);
  const std::unique_ptr<Communicator> communicator = world.communicator({0});
  world.communicator({1})->abort_all({1}, "first");
  communicator->abort_all({0}, "second");
  try {
    communicator->start_barrier(0).wait();
    FAIL() << "the world was aborted";
  } catch (const Aborted& error) {
    EXPECT_EQ(error.failed_rank(), Rank{1});
    EXPECT_STREQ(error.what(), "rank 1 failed: first");
  }
}

TEST(LocalAbort, LeavesNoThreadInABufferThatIsFreed) {
  for (int round = 0; round < 20; ++round) {
    run_ranks(4, [&](Communicator& all) {
      for (std::size_t i = 0;; ++i) {
        std::vector<float> values(50'000, 1.0f);
        Completion completion = all.start_all_reduce(elements_of(std::span(values)), i);
        if (all.index() == 3 && i == 2) all.abort_all({3}, "enough");
        completion.wait();
      }
    });
  }
}

/// What a rank does that begins to communicate and then finds that it cannot go on.
template <typename Start>
std::vector<std::string> run_ranks_of_which_one_fails(Start start) {
  return run_ranks(2, [&](Communicator& all) {
    try {
      double value = 0;
      Completion completion = start(all, elements_of(std::span(&value, 1)));
      if (all.index() == 0) throw std::runtime_error("the disk is full");
      completion.wait();
    } catch (const std::runtime_error& error) {
      all.abort_all(all.rank_of(all.index()), error.what());
      throw;
    }
  });
}

TEST(LocalCompletion, OfAReceiveDoesNotHoldUpAnException) {
  EXPECT_THAT(run_ranks_of_which_one_fails(
                  [](Communicator& all, Elements one) { return all.start_receive(1 - all.index(), 1, one); }),
              ElementsAre("the disk is full", "rank 0 failed: the disk is full"));
}

TEST(LocalCompletion, OfACollectiveDoesNotHoldUpAnException) {
  const std::vector<std::string> errors = run_ranks_of_which_one_fails([](Communicator& all, Elements one) {
    if (all.index() == 0) return all.start_all_reduce(one, 0);
    return all.start_receive(0, 1, one);  // the collective waits for this rank in vain
  });
  EXPECT_THAT(errors,
              ElementsAre("the disk is full", "rank 0 failed: it left a collective that it had begun"));
}

TEST(LocalCompletion, ThatIsDroppedFinishesACollectiveToWhichAllHaveCome) {
  local::LocalWorld world(2);
  const std::unique_ptr<Communicator> first = world.communicator({0});
  const std::unique_ptr<Communicator> second = world.communicator({1});
  std::vector<double> one(1000, 1.0);
  std::vector<double> other(1000, 2.0);
  Completion kept = first->start_all_reduce(elements_of(std::span(one)), 0);
  { const Completion dropped = second->start_all_reduce(elements_of(std::span(other)), 0); }
  EXPECT_THAT(other, Each(3.0));
  kept.wait();
  EXPECT_THAT(one, Each(3.0));
}

}  // namespace
}  // namespace plenum::comm

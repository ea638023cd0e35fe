#include <chrono>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/comm/local_ranks.h"

namespace plenum::comm {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

void send_number(Communicator& all, std::size_t to, Tag tag, std::int64_t number) {
  all.start_send(to, tag, elements_of(std::span<const std::int64_t>(&number, 1))).wait();
}

std::int64_t receive_number(Communicator& all, std::size_t from, Tag tag) {
  std::int64_t number = -1;
  all.start_receive(from, tag, elements_of(std::span(&number, 1))).wait();
  return number;
}

TEST(LocalMessages, AreMatchedBySenderAndTag) {
  constexpr Tag kFar = Tag{1} << 63;
  EXPECT_THAT(run_local_ranks(3,
                              [](Communicator& all) {
                                if (all.index() != 2) {
                                  const auto base = static_cast<std::int64_t>(10 * all.index());
                                  send_number(all, 2, 1, base + 1);
                                  send_number(all, 2, kFar, base + 2);
                                  return;
                                }
                                EXPECT_EQ(receive_number(all, 1, kFar), 12);
                                EXPECT_EQ(receive_number(all, 0, 1), 1);
                                EXPECT_EQ(receive_number(all, 0, kFar), 2);
                                EXPECT_EQ(receive_number(all, 1, 1), 11);
                              }),
              Each(""));
}

TEST(LocalMessages, WithOneTagArriveInOrder) {
  EXPECT_THAT(run_local_ranks(2,
                              [](Communicator& all) {
                                constexpr std::int64_t kNumMessages = 300;
                                for (std::int64_t i = 0; i < kNumMessages; ++i) {
                                  if (all.index() == 0) {
                                    send_number(all, 1, 5, i);
                                  } else {
                                    ASSERT_EQ(receive_number(all, 0, 5), i);
                                  }
                                }
                              }),
              Each(""));
}

TEST(LocalMessages, FillReceivesThatWereStartedBefore) {
  EXPECT_THAT(run_local_ranks(2,
                              [](Communicator& all) {
                                std::vector<std::int64_t> numbers(8, -1);
                                std::vector<Completion> completions;
                                for (std::size_t i = 0; i < numbers.size(); ++i) {
                                  completions.push_back(all.start_receive(
                                      1 - all.index(), i, elements_of(std::span(&numbers[i], 1))));
                                }
                                EXPECT_FALSE(all.index() == 0 && completions.back().test());
                                all.start_barrier(0).wait();
                                for (std::size_t i = numbers.size(); i > 0; --i) {
                                  send_number(all, 1 - all.index(), i - 1, static_cast<std::int64_t>(i));
                                }
                                for (Completion& completion : completions) completion.wait();
                                EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
                              }),
              Each(""));
}

TEST(LocalMessages, MayBeEmptyAndGoToOneself) {
  EXPECT_THAT(run_local_ranks(1,
                              [](Communicator& all) {
                                all.start_send(0, 3, {}).wait();
                                all.start_receive(0, 3, {}).wait();
                                send_number(all, 0, 3, 7);
                                EXPECT_EQ(receive_number(all, 0, 3), 7);
                              }),
              Each(""));
}

TEST(LocalMessages, NameBothWhereSizesDiffer) {
  const std::vector<std::string> errors = run_local_ranks(2, [](Communicator& all) {
    std::vector<double> values(all.index() == 0 ? 3 : 5);
    if (all.index() == 0) {
      all.start_send(1, 0x7, elements_of(std::span(values))).wait();
    } else {
      all.start_receive(0, 0x7, elements_of(std::span(values))).wait();
    }
  });
  EXPECT_THAT(errors[1], HasSubstr("message 0x7: rank 0 sends 3 float64, rank 1 expects 5 float64"));
}

TEST(LocalAbort, WakesEveryoneAndSaysWhy) {
  const std::vector<std::string> errors = run_local_ranks(5, [](Communicator& all) {
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
    run_local_ranks(4, [&](Communicator& all) {
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
  return run_local_ranks(2, [&](Communicator& all) {
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

TEST(LocalCompletion, ThatIsDroppedLeavesItsMessageToTheNext) {
  EXPECT_THAT(run_local_ranks(1,
                              [](Communicator& all) {
                                std::int64_t never = -1;
                                {
                                  const Completion dropped =
                                      all.start_receive(0, 4, elements_of(std::span(&never, 1)));
                                }
                                send_number(all, 0, 4, 7);
                                EXPECT_EQ(receive_number(all, 0, 4), 7);
                                EXPECT_EQ(never, -1);
                              }),
              Each(""));
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

#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/comm/ranks.h"

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

TEST(Messages, AreMatchedBySenderAndTag) {
  if (most_ranks() < 3) GTEST_SKIP() << "needs 3 ranks";
  constexpr Tag kFar = Tag{1} << 63;
  EXPECT_THAT(run_ranks(3,
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

TEST(Messages, WithOneTagArriveInOrder) {
  EXPECT_THAT(run_ranks(2,
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

TEST(Messages, FillReceivesThatWereStartedBefore) {
  EXPECT_THAT(run_ranks(2,
                        [](Communicator& all) {
                          std::vector<std::int64_t> numbers(8, -1);
                          std::vector<Completion> completions;
                          for (std::size_t i = 0; i < numbers.size(); ++i) {
                            completions.push_back(all.start_receive(1 - all.index(), i,
                                                                    elements_of(std::span(&numbers[i], 1))));
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

/// More than any engine sends at once, and different in every message.
std::vector<std::int64_t> long_message(std::int64_t number) {
  std::vector<std::int64_t> values(100'003);
  std::iota(values.begin(), values.end(), number * 1'000'000);
  return values;
}

TEST(Messages, OfAnySizeMayBeReceivedInAnotherOrder) {
  EXPECT_THAT(run_ranks(2,
                        [](Communicator& all) {
                          constexpr Tag kNumMessages = 4;
                          std::vector<std::vector<std::int64_t>> messages;
                          std::vector<Completion> completions;
                          for (Tag tag = 0; tag < kNumMessages; ++tag) {
                            messages.push_back(long_message(static_cast<std::int64_t>(tag)));
                            if (all.index() == 1) std::fill(messages[tag].begin(), messages[tag].end(), -1);
                          }
                          for (Tag i = 0; i < kNumMessages; ++i) {
                            const Tag tag = all.index() == 0 ? i : kNumMessages - 1 - i;
                            const Elements message = elements_of(std::span(messages[tag]));
                            completions.push_back(all.index() == 0 ? all.start_send(1, tag, message)
                                                                   : all.start_receive(0, tag, message));
                          }
                          for (Completion& completion : completions) completion.wait();
                          for (Tag tag = 0; tag < kNumMessages; ++tag) {
                            EXPECT_EQ(messages[tag], long_message(static_cast<std::int64_t>(tag)));
                          }
                        }),
              Each(""));
}

TEST(Messages, PassCollectivesThatAreUnderWay) {
  EXPECT_THAT(run_ranks(2,
                        [](Communicator& all) {
                          std::vector<std::int64_t> sums(50'000, 1);
                          Completion reduced = all.start_all_reduce(elements_of(std::span(sums)), 0);
                          if (all.index() == 0) EXPECT_EQ(receive_number(all, 1, 3), 17);
                          reduced.wait();
                          if (all.index() == 1) send_number(all, 0, 3, 17);
                          EXPECT_THAT(sums, Each(2));
                        }),
              Each(""));
}

TEST(Messages, ThatDoNotFitSpoilNoOther) {
  const std::vector<std::string> errors = run_ranks(2, [](Communicator& all) {
    std::vector<std::int64_t> values = long_message(5);
    if (all.index() == 0) {
      Completion misfit = all.start_send(1, 1, elements_of(std::span(values)));
      send_number(all, 1, 1, 9);
      return misfit.wait();
    }
    values.pop_back();
    Completion misfit = all.start_receive(0, 1, elements_of(std::span(values)));
    EXPECT_EQ(receive_number(all, 0, 1), 9);
    misfit.wait();
  });
  EXPECT_THAT(errors, ElementsAre("", HasSubstr("rank 0 sends 100003 int64, rank 1 expects 100002 int64")));
}

TEST(Messages, MayBeEmptyAndGoToOneself) {
  EXPECT_THAT(run_ranks(1,
                        [](Communicator& all) {
                          all.start_send(0, 3, {}).wait();
                          all.start_receive(0, 3, {}).wait();
                          send_number(all, 0, 3, 7);
                          EXPECT_EQ(receive_number(all, 0, 3), 7);
                        }),
              Each(""));
}

TEST(Messages, NameBothWhereSizesDiffer) {
  const std::vector<std::string> errors = run_ranks(2, [](Communicator& all) {
    std::vector<double> values(all.index() == 0 ? 3 : 5);
    if (all.index() == 0) {
      all.start_send(1, 0x7, elements_of(std::span(values))).wait();
    } else {
      all.start_receive(0, 0x7, elements_of(std::span(values))).wait();
    }
  });
  EXPECT_THAT(errors[1], HasSubstr("message 0x7: rank 0 sends 3 float64, rank 1 expects 5 float64"));
}

TEST(Completions, ThatIsDroppedLeavesItsMessageToTheNext) {
  EXPECT_THAT(run_ranks(1,
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

}  // namespace
}  // namespace plenum::comm

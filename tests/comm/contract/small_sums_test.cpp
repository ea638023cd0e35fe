// Collectives that are small enough to travel with a greeting (comm/mpi/greeting), and those just above:
// among so many members, too, that they take two rounds.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/comm/ranks.h"

namespace plenum::comm {
namespace {

using testing::Each;
using testing::HasSubstr;

/// Sums of these depend on their order.
double summand(std::size_t member, std::size_t i) {
  return 1.0 / static_cast<double>(3 + member * 11 + i % 997) + static_cast<double>(member * i) * 1e-3;
}

std::vector<double> summands(std::size_t member, std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = summand(member, i);
  return values;
}

std::vector<double> sums_in_member_order(std::size_t num_members, std::size_t count) {
  std::vector<double> sums = summands(0, count);
  for (std::size_t member = 1; member < num_members; ++member)
    for (std::size_t i = 0; i < count; ++i) sums[i] += summand(member, i);
  return sums;
}

class SmallSums : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (GetParam() > most_ranks()) GTEST_SKIP() << "there are " << most_ranks() << " ranks";
  }
};

TEST_P(SmallSums, AreInTheOrderOfMembersBelowAndAboveEveryLimit) {
  const auto work = [](Communicator& all) {
    for (const std::size_t count : {0, 1, 3, 40, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097}) {
      std::vector<double> values = summands(all.index(), count);
      all.start_all_reduce(elements_of(std::span(values)), count).wait();
      EXPECT_EQ(values, sums_in_member_order(all.size(), count)) << count << " elements";
    }
  };
  EXPECT_THAT(run_ranks(GetParam(), work), Each(""));
}

TEST_P(SmallSums, OfTypesOfAnySizeLieWhereTheyMay) {
  const auto work = [](Communicator& all) {
    for (std::size_t count = 1; count < 8; ++count) {
      std::vector<float> values(count, static_cast<float>(all.index() + count));
      all.start_all_reduce(elements_of(std::span(values)), 0).wait();
      const std::size_t sum = all.size() * (all.size() - 1) / 2 + all.size() * count;
      EXPECT_THAT(values, Each(static_cast<float>(sum)));
    }
  };
  EXPECT_THAT(run_ranks(GetParam(), work), Each(""));
}

TEST_P(SmallSums, OfManyFollowEachOtherWhateverTheirKind) {
  const auto work = [](Communicator& all) {
    const std::size_t size = all.size();
    for (std::size_t i = 0; i < 40; ++i) {
      std::vector<double> values = summands(all.index(), 1 + i);
      Completion sum = all.start_all_reduce(elements_of(std::span(values)), i);
      Completion barrier = all.start_barrier(i);
      double from_root = all.index() == i % size ? 7.0 : 0.0;
      Completion broadcast = all.start_broadcast(elements_of(std::span(&from_root, 1)), i % size, i);
      // Member m brings m + i bytes: records of different sizes pass through the rounds.
      std::vector<std::size_t> counts(size);
      for (std::size_t member = 0; member < size; ++member) counts[member] = member + i;
      const std::vector<std::byte> own(counts[all.index()], static_cast<std::byte>(all.index()));
      std::vector<std::byte> gathered(size * i + size * (size - 1) / 2);
      Completion gather =
          all.start_all_gather(elements_of(std::span(own)), elements_of(std::span(gathered)), counts, i);
      gather.wait();
      broadcast.wait();
      barrier.wait();
      sum.wait();
      EXPECT_EQ(values, sums_in_member_order(size, 1 + i));
      EXPECT_EQ(from_root, 7.0);
      std::vector<std::byte> expected;
      for (std::size_t member = 0; member < size; ++member)
        expected.insert(expected.end(), counts[member], static_cast<std::byte>(member));
      EXPECT_EQ(gathered, expected);
    }
  };
  EXPECT_THAT(run_ranks(GetParam(), work), Each(""));
}

TEST_P(SmallSums, ThatDifferAreNamedByAllAndTheNextOneIsRight) {
  const std::size_t last = GetParam() - 1;
  const auto work = [last](Communicator& all) {
    std::vector<double> values(all.index() == last ? 5 : 3);
    std::string error;
    try {
      all.start_all_reduce(elements_of(std::span(values)), 0).wait();
    } catch (const std::exception& caught) {
      error = caught.what();
    }
    EXPECT_THAT(error, HasSubstr("rank 0 has all-reduce of 3 float64, rank " + std::to_string(last) +
                                 " has all-reduce of 5 float64"));
    values = summands(all.index(), 40);
    all.start_all_reduce(elements_of(std::span(values)), 0).wait();
    EXPECT_EQ(values, sums_in_member_order(all.size(), 40));
  };
  EXPECT_THAT(run_ranks(GetParam(), work), Each(""));
}

INSTANTIATE_TEST_SUITE_P(Ranks, SmallSums, testing::Values(2, 3, 4, 5, 6, 7, 8, 9, 17, 20));

}  // namespace
}  // namespace plenum::comm

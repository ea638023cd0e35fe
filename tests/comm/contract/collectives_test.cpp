#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/tensor/bfloat16.h"

#include "tests/comm/ranks.h"

namespace plenum::comm {
namespace {

using testing::Each;
using testing::HasSubstr;

/// What element `i` of a member's buffer is: sums of these depend on their order.
double value_of(std::size_t member, std::size_t i) {
  return 1.0 / static_cast<double>(3 + member * 7 + i % 1001) + static_cast<double>(member * i) * 1e-3;
}

std::vector<double> values_of(std::size_t member, std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(member, i);
  return values;
}

std::vector<double> sums_of(std::size_t num_members, std::size_t count) {
  std::vector<double> sums = values_of(0, count);
  for (std::size_t member = 1; member < num_members; ++member) {
    for (std::size_t i = 0; i < count; ++i) sums[i] += value_of(member, i);
  }
  return sums;
}

/// Divides elements over parts as evenly as can be.
std::vector<std::size_t> even_counts(std::size_t num_elements, std::size_t num_parts) {
  std::vector<std::size_t> counts(num_parts);
  for (std::size_t i = 0; i < num_parts; ++i) {
    counts[i] = num_elements * (i + 1) / num_parts - num_elements * i / num_parts;
  }
  return counts;
}

Elements elements(std::vector<double>& values) {
  return elements_of(std::span(values));
}

/// Each test runs with a number of ranks and buffers of several sizes.
class Collectives : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (GetParam() > most_ranks()) GTEST_SKIP() << "there are " << most_ranks() << " ranks";
  }

  std::size_t count() const { return count_; }

  void run(const std::function<void(Communicator&)>& work) {
    for (const std::size_t count : {0, 1, 5, 1037, 20011, 70'003}) {
      count_ = count;
      EXPECT_THAT(run_ranks(GetParam(), work), Each(""));
    }
  }

 private:
  std::size_t count_ = 0;
};

TEST_P(Collectives, AllReduceSumsInTheOrderOfRanks) {
  run([&](Communicator& all) {
    std::vector<double> values = values_of(all.index(), count());
    all.start_all_reduce(elements(values), 0).wait();
    EXPECT_EQ(values, sums_of(all.size(), count()));
  });
}

TEST_P(Collectives, SumsOfBFloat16AreThoseOfFloat32RoundedOnce) {
  using tensor::BFloat16;
  run([&](Communicator& all) {
    const auto values_of_member = [&](std::size_t member) {
      std::vector<BFloat16> values(count());
      for (std::size_t i = 0; i < count(); ++i)
        values[i] = tensor::to_bfloat16(static_cast<float>(value_of(member, i)));
      return values;
    };
    std::vector<float> sums(count());
    for (std::size_t member = 0; member < all.size(); ++member) {
      const std::vector<BFloat16> values = values_of_member(member);
      for (std::size_t i = 0; i < count(); ++i)
        sums[i] = member == 0 ? tensor::to_float(values[i]) : sums[i] + tensor::to_float(values[i]);
    }
    std::vector<BFloat16> expected(count());
    std::ranges::transform(sums, expected.begin(), tensor::to_bfloat16);
    std::vector<BFloat16> values = values_of_member(all.index());
    all.start_all_reduce({std::as_writable_bytes(std::span(values)), tensor::DType::BFloat16}, 0).wait();
    EXPECT_EQ(values, expected);
  });
}

TEST_P(Collectives, ReduceScatterGivesEachItsPart) {
  run([&](Communicator& all) {
    const std::vector<double> source = values_of(all.index(), count());
    const std::vector<std::size_t> counts = even_counts(count(), all.size());
    const auto begin = std::accumulate(counts.begin(), counts.begin() + static_cast<int>(all.index()), 0);
    const std::vector<double> sums = sums_of(all.size(), count());
    const std::vector<double> expected(
        sums.begin() + begin, sums.begin() + begin + static_cast<std::ptrdiff_t>(counts[all.index()]));

    std::vector<double> apart(counts[all.index()]);
    all.start_reduce_scatter(elements_of(std::span(source)), elements(apart), counts, 0).wait();
    EXPECT_EQ(apart, expected);

    std::vector<double> in_place = source;
    const Elements part = elements(in_place).part(static_cast<std::size_t>(begin), counts[all.index()]);
    all.start_reduce_scatter(elements(in_place), part, counts, 0).wait();
    std::vector<double> result = source;
    std::copy(expected.begin(), expected.end(), result.begin() + begin);
    EXPECT_EQ(in_place, result);
  });
}

TEST_P(Collectives, AllGatherTakesPartsOfAnySize) {
  run([&](Communicator& all) {
    // The first member brings nothing, the last most.
    std::vector<std::size_t> counts(all.size());
    std::vector<double> expected;
    for (std::size_t member = 0; member < all.size(); ++member) {
      counts[member] = member * count();
      const std::vector<double> part = values_of(member, counts[member]);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    const std::vector<double> source = values_of(all.index(), counts[all.index()]);
    std::vector<double> apart(expected.size());
    all.start_all_gather(elements_of(std::span(source)), elements(apart), counts, 0).wait();
    EXPECT_EQ(apart, expected);

    std::vector<double> in_place(expected.size());
    const std::size_t begin = std::accumulate(
        counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(all.index()), std::size_t{0});
    const Elements part = elements(in_place).part(begin, source.size());
    if (!source.empty()) std::memcpy(part.bytes.data(), source.data(), part.bytes.size());
    all.start_all_gather(part, elements(in_place), counts, 0).wait();
    EXPECT_EQ(in_place, expected);
  });
}

TEST_P(Collectives, BroadcastComesFromAnyRoot) {
  run([&](Communicator& all) {
    for (std::size_t root = 0; root < all.size(); ++root) {
      std::vector<double> values = values_of(all.index(), count());
      all.start_broadcast(elements(values), root, 0).wait();
      EXPECT_EQ(values, values_of(root, count()));
    }
  });
}

TEST_P(Collectives, AllToAllSendsEachWhatIsItsOwn) {
  run([&](Communicator& all) {
    // Member i sends i + j + count elements to member j, which are 100 i + j.
    std::vector<std::size_t> counts(all.size());
    std::vector<double> source;
    std::vector<double> expected;
    for (std::size_t other = 0; other < all.size(); ++other) {
      counts[other] = (all.index() + other) * count();
      source.resize(source.size() + counts[other], static_cast<double>(100 * all.index() + other));
      expected.resize(expected.size() + counts[other], static_cast<double>(100 * other + all.index()));
    }
    std::vector<double> destination(expected.size());
    all.start_all_to_all(elements(source), counts, elements(destination), counts, 0).wait();
    EXPECT_EQ(destination, expected);
  });
}

TEST_P(Collectives, ManyMayBeInFlightAndAreWaitedForInAnyOrder) {
  run([&](Communicator& all) {
    constexpr std::size_t kNumInFlight = 9;
    std::vector<std::vector<double>> buffers;
    for (std::size_t i = 0; i < kNumInFlight; ++i) buffers.push_back(values_of(all.index(), count() + i));
    std::vector<Completion> completions;
    for (std::size_t i = 0; i < kNumInFlight; ++i) {
      completions.push_back(all.start_all_reduce(elements(buffers[i]), i));
    }
    for (std::size_t i = 0; i < kNumInFlight; ++i) {
      const std::size_t which = all.index() % 2 == 0 ? i : kNumInFlight - 1 - i;
      if (all.index() % 3 == 0) {
        completions[which].wait();
      } else {
        while (!completions[which].test()) std::this_thread::yield();
      }
      EXPECT_EQ(buffers[which], sums_of(all.size(), count() + which));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Range(std::size_t{1}, std::size_t{8}));

TEST(Communicator, GroupsTalkAmongThemselves) {
  if (most_ranks() < 4) GTEST_SKIP() << "needs 4 ranks";
  EXPECT_THAT(run_ranks(4,
                        [](Communicator& all) {
                          // Even and odd ranks, highest first; then another of the same.
                          const std::size_t parity = all.index() % 2;
                          const std::vector<std::size_t> members = {2 + parity, parity};
                          const std::unique_ptr<Communicator> group = all.group(members);
                          EXPECT_EQ(group->size(), 2u);
                          EXPECT_EQ(group->rank_of(group->index()).index(), all.index());
                          EXPECT_EQ(group->rank_of(0).index(), 2 + parity);
                          const std::unique_ptr<Communicator> again = group->duplicate();
                          std::int64_t sum = static_cast<std::int64_t>(all.index());
                          std::int64_t second = 1;
                          Completion late = again->start_all_reduce(elements_of(std::span(&second, 1)), 0);
                          group->start_all_reduce(elements_of(std::span(&sum, 1)), 0).wait();
                          late.wait();
                          EXPECT_EQ(sum, parity == 0 ? 2 : 4);
                          EXPECT_EQ(second, 2);
                        }),
              Each(""));
}

TEST(Communicator, GroupsOfDifferentMembersAreMadeInAnyOrder) {
  if (most_ranks() < 3) GTEST_SKIP() << "needs 3 ranks";
  EXPECT_THAT(run_ranks(3,
                        [](Communicator& all) {
                          using Members = std::vector<std::size_t>;
                          std::vector<Members> lists = {{0, 1, 2}, {0, 1}, {0, 1, 2}};
                          if (all.index() == 1) std::swap(lists[0], lists[1]);
                          if (all.index() == 2) lists.erase(lists.begin() + 1);
                          std::vector<std::unique_ptr<Communicator>> groups;
                          for (const Members& members : lists) groups.push_back(all.group(members));
                          std::int64_t sum = 0;
                          for (const std::size_t size : {3, 2}) {
                            for (const std::unique_ptr<Communicator>& group : groups) {
                              if (group->size() != size) continue;
                              std::int64_t one = 1;
                              group->start_all_reduce(elements_of(std::span(&one, 1)), 0).wait();
                              sum += one;
                            }
                          }
                          EXPECT_EQ(sum, all.index() == 2 ? 6 : 8);
                        }),
              Each(""));
}

TEST(Communicator, WaitsHelpOnWhatElseTheRankHasBegun) {
  EXPECT_THAT(run_ranks(2,
                        [](Communicator& all) {
                          const std::unique_ptr<Communicator> other = all.duplicate();
                          std::vector<double> first = values_of(all.index(), 100'000);
                          std::vector<double> second = first;
                          Completion one = all.start_all_reduce(elements(first), 0);
                          Completion two = other->start_all_reduce(elements(second), 0);
                          if (all.index() == 0) std::swap(one, two);
                          one.wait();
                          two.wait();
                          EXPECT_EQ(first, sums_of(2, first.size()));
                          EXPECT_EQ(second, first);
                        }),
              Each(""));
}

TEST(Communicator, LanesOfARankDoNotMixTheirCollectives) {
  if (most_ranks() < 3) GTEST_SKIP() << "needs 3 ranks";
  EXPECT_THAT(run_ranks(3,
                        [](Communicator& all) {
                          const std::unique_ptr<Communicator> other = all.duplicate();
                          const auto sum_often = [](Communicator& lane, double start) {
                            for (std::size_t i = 0; i < 200; ++i) {
                              std::vector<double> values(33, start + static_cast<double>(i));
                              lane.start_all_reduce(elements(values), i).wait();
                              ASSERT_THAT(values, Each(3 * (start + static_cast<double>(i))));
                            }
                          };
                          const std::jthread lane([&] { sum_often(*other, 1000.0); });
                          sum_often(all, 0.0);
                        }),
              Each(""));
}

TEST(Communicator, NamesBothWhereSizesDiffer) {
  if (most_ranks() < 3) GTEST_SKIP() << "needs 3 ranks";
  const std::vector<std::string> errors = run_ranks(3, [](Communicator& all) {
    std::vector<double> values(all.index() == 2 ? 5 : 3);
    all.start_all_reduce(elements(values), 0).wait();
  });
  EXPECT_THAT(errors, Each(HasSubstr("rank 0 has all-reduce of 3 float64, rank 2 has all-reduce of 5")));
}

TEST(Communicator, NamesBothWhereCollectivesDiffer) {
  const std::vector<std::string> kinds = run_ranks(2, [](Communicator& all) {
    double value = 0;
    if (all.index() == 0) {
      all.start_all_reduce(elements_of(std::span(&value, 1)), 0).wait();
    } else {
      all.start_broadcast(elements_of(std::span(&value, 1)), 0, 0).wait();
    }
  });
  EXPECT_THAT(kinds, Each(HasSubstr("rank 0 has all-reduce of 1 float64, rank 1 has broadcast")));
  const std::vector<std::string> tags =
      run_ranks(2, [](Communicator& all) { all.start_barrier(all.index() + 17).wait(); });
  EXPECT_THAT(tags, Each(HasSubstr("rank 0 has barrier 0x11, rank 1 has barrier 0x12")));
  const std::vector<std::string> counts = run_ranks(2, [](Communicator& all) {
    std::vector<double> source(4);
    std::vector<double> destination(all.index() == 0 ? 4 : 3);
    const std::vector<std::size_t> sent = {2, 2};
    const std::vector<std::size_t> received = {2, all.index() == 0 ? 2u : 1u};
    all.start_all_to_all(elements(source), sent, elements(destination), received, 0).wait();
  });
  EXPECT_THAT(counts, Each(HasSubstr("rank 1 sends 2 elements to rank 1, which expects 1")));
}

TEST(Communicator, RefusesSizesThatContradictThemselves) {
  EXPECT_THAT(run_ranks(1,
                        [](Communicator& all) {
                          std::vector<double> values(3);
                          const std::vector<std::size_t> counts = {2};
                          all.start_all_gather(elements(values), elements(values), counts, 0).wait();
                        }),
              Each(HasSubstr("buffers must have the size of the counts")));
}

TEST(Communicator, RefusesToSumBytesBeforeAnyoneWaits) {
  EXPECT_THAT(
      run_ranks(2,
                [](Communicator& all) {
                  std::vector<std::byte> bytes(8);
                  const std::vector<std::size_t> counts = {4, 4};
                  const Elements elements = elements_of(std::span(bytes));
                  EXPECT_THROW(static_cast<void>(all.start_all_reduce(elements, 0)), base::InternalError);
                  EXPECT_THROW(
                      static_cast<void>(all.start_reduce_scatter(elements, elements.part(0, 4), counts, 0)),
                      base::InternalError);
                }),
      Each(""));
}

TEST(Communicator, RefusesPartsOfElements) {
  EXPECT_THAT(run_ranks(1,
                        [](Communicator& all) {
                          std::vector<double> values(2);
                          const Elements broken{elements(values).bytes.first(11), tensor::DType::Float64};
                          EXPECT_THROW(all.start_all_reduce(broken, 0).wait(), base::InternalError);
                          EXPECT_THROW(all.start_broadcast(broken, 0, 0).wait(), base::InternalError);
                          EXPECT_THROW(all.start_send(0, 1, broken).wait(), base::InternalError);
                          EXPECT_THROW(all.start_receive(0, 1, broken).wait(), base::InternalError);
                        }),
              Each(""));
}

}  // namespace
}  // namespace plenum::comm

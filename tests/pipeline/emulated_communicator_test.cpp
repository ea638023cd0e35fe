#include "plenum/pipeline/emulated_communicator.h"

#include <array>
#include <chrono>
#include <functional>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/comm/local/local_world.h"

namespace plenum::pipeline {
namespace {

using comm::elements_of;
using testing::ElementsAre;

/// Lets threads that are ranks talk over a link.
void on_ranks(std::size_t count, const plan::Link& link,
              const std::function<void(comm::Communicator&)>& work) {
  comm::local::LocalWorld world(count);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, own = world.communicator(comm::Rank::at(i))]() mutable {
      EmulatedCommunicator emulated(std::move(own), link);
      work(emulated);
    });
  }
}

constexpr plan::Link kFast{.latency_seconds = 1e-6, .bytes_per_second = 1e12};

TEST(EmulatedCommunicator, CollectivesGiveWhatTheyGiveWithoutIt) {
  on_ranks(3, kFast, [](comm::Communicator& ranks) {
    const auto own = static_cast<float>(ranks.index());
    std::vector<float> sum = {own, 10 * own};
    ranks.start_all_reduce(elements_of(std::span(sum)), 1).wait();
    EXPECT_THAT(sum, ElementsAre(3, 30));

    const std::vector<std::size_t> counts = {1, 2, 1};
    const std::vector<float> source = {1, 2, 3, own};
    std::vector<float> part(counts[ranks.index()]);
    ranks.start_reduce_scatter(elements_of(std::span(source)), elements_of(std::span(part)), counts, 2)
        .wait();
    EXPECT_FLOAT_EQ(part.front(), ranks.index() == 0 ? 3 : ranks.index() == 1 ? 6 : 3);

    std::vector<float> all(4);
    const std::vector<float> given(counts[ranks.index()], own);
    ranks.start_all_gather(elements_of(std::span(given)), elements_of(std::span(all)), counts, 3).wait();
    EXPECT_THAT(all, ElementsAre(0, 1, 1, 2));

    std::vector<float> told = {own};
    ranks.start_broadcast(elements_of(std::span(told)), 2, 4).wait();
    EXPECT_THAT(told, ElementsAre(2));

    const std::vector<std::size_t> one_each = {1, 1, 1};
    const std::vector<float> to_all = {10 * own, 10 * own + 1, 10 * own + 2};
    std::vector<float> from_all(3);
    ranks
        .start_all_to_all(elements_of(std::span(to_all)), one_each, elements_of(std::span(from_all)),
                          one_each, 5)
        .wait();
    EXPECT_THAT(from_all, ElementsAre(own, 10 + own, 20 + own));
    ranks.start_barrier(6).wait();
  });
}

TEST(EmulatedCommunicator, MessagesOfATagKeepTheirOrderAndOthersDoNot) {
  on_ranks(2, kFast, [](comm::Communicator& ranks) {
    std::array<float, 3> values = {1, 2, 3};
    if (ranks.index() == 0) {
      ranks.start_send(1, 7, elements_of(std::span<const float>(values).subspan(0, 1))).wait();
      ranks.start_send(1, 8, elements_of(std::span<const float>(values).subspan(1, 1))).wait();
      ranks.start_send(1, 7, elements_of(std::span<const float>(values).subspan(2, 1))).wait();
      return;
    }
    values = {};
    ranks.start_receive(0, 8, elements_of(std::span(values).subspan(1, 1))).wait();
    ranks.start_receive(0, 7, elements_of(std::span(values).subspan(0, 1))).wait();
    comm::Completion last = ranks.start_receive(0, 7, elements_of(std::span(values).subspan(2, 1)));
    while (!last.test()) std::this_thread::yield();
    EXPECT_THAT(values, ElementsAre(1, 2, 3));
  });
}

TEST(EmulatedCommunicator, GroupsAreEmulatedToo) {
  on_ranks(3, kFast, [](comm::Communicator& ranks) {
    const std::unique_ptr<comm::Communicator> copy = ranks.duplicate();
    if (ranks.index() == 1) return;
    const std::array<std::size_t, 2> members = {2, 0};
    const std::unique_ptr<comm::Communicator> two = copy->group(members);
    EXPECT_NE(dynamic_cast<EmulatedCommunicator*>(two.get()), nullptr);
    std::vector<float> sum = {1};
    two->start_all_reduce(elements_of(std::span(sum)), 1).wait();
    EXPECT_THAT(sum, ElementsAre(2));
  });
}

// Not how fast it is, but what it is for: nothing is there before the link could have brought it. What starts
// late cannot make these fail.
TEST(EmulatedCommunicator, NothingIsThereBeforeTheLinkCouldHaveBroughtIt) {
  using Clock = std::chrono::steady_clock;
  // 2,000 bytes take 2 ms.
  const plan::Link slow{.latency_seconds = 0.01, .bytes_per_second = 1e6};
  on_ranks(2, slow, [&](comm::Communicator& ranks) {
    std::vector<float> values(500);
    const auto seconds_of = [](const std::function<void()>& work) {
      const Clock::time_point begin = Clock::now();
      work();
      return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    EXPECT_GE(seconds_of([&] { ranks.start_all_reduce(elements_of(std::span(values)), 1).wait(); }),
              plan::all_reduce_seconds(slow, 2000, 2).total());
    ranks.start_barrier(2).wait();
    // Two messages follow each other on the wire, with one latency behind the last.
    const double both = seconds_of([&] {
      if (ranks.index() == 0) {
        comm::Completion first = ranks.start_send(1, 3, elements_of(std::span<const float>(values)));
        ranks.start_send(1, 3, elements_of(std::span<const float>(values))).wait();
        first.wait();
      } else {
        ranks.start_receive(0, 3, elements_of(std::span(values))).wait();
        ranks.start_receive(0, 3, elements_of(std::span(values))).wait();
      }
    });
    if (ranks.index() == 0) {
      EXPECT_GE(both, 0.004);
    }
  });
}

TEST(EmulatedCommunicator, WhoeverWaitsHearsOfAnAbort) {
  on_ranks(2, kFast, [](comm::Communicator& ranks) {
    if (ranks.index() == 0) return ranks.abort_all(comm::Rank::at(0), "over");
    std::vector<float> values(1);
    EXPECT_THROW(ranks.start_receive(0, 1, elements_of(std::span(values))).wait(), comm::Aborted);
  });
}

}  // namespace
}  // namespace plenum::pipeline

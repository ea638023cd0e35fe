// Ranks whose communication goes into queues of a device.

#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "tests/comm/ranks.h"
#include "tests/support/thread_device.h"

namespace plenum::comm {
namespace {

using namespace std::chrono_literals;
using tensor::ThreadDevice;
using tensor::ThreadQueue;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

Elements doubles(std::vector<double>& values) {
  return elements_of(std::span(values));
}

/// One rank with a queue of its own, the device being everybody's.
struct QueuedRank {
  QueuedRank(Communicator& all, ThreadDevice& device, ThreadQueue::Faults faults = {})
      : ranks(all.duplicate()), queue(device, faults) {
    ranks->issue_into(queue);
  }
  /// Until all that it has put in is done.
  void finish() const {
    const std::unique_ptr<tensor::QueueEvent> end = queue.make_event(ThreadQueue::Timed::No);
    queue.record(*end);
    tensor::wait_on_host(*end, [] { return false; });
  }

  std::unique_ptr<Communicator> ranks;
  ThreadQueue queue;
};

/// A few rounds in which every rank's queue is slower than the others' in turn; what the last round gave.
/// Where queues do not wait they may still work on another rank's values when that has ended.
std::vector<double> sums_in_rounds(std::size_t num_ranks, bool ignores_waits) {
  ThreadDevice device;
  std::vector<std::vector<double>> values_of(num_ranks, std::vector<double>(5));
  run_ranks(num_ranks, [&](Communicator& all) {
    const ThreadQueue::Faults faults{.ignores_waits = ignores_waits, .delay = 1ms * (all.index() + 1)};
    const QueuedRank own(all, device, faults);
    std::vector<double>& values = values_of[all.index()];
    for (int round = 1; round <= 4; ++round) {
      own.queue.put([&values, round, index = all.index()] {
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = round * (1.0 + static_cast<double>(index * 10 + i));
      });
      own.ranks->start_all_reduce(doubles(values), static_cast<Tag>(round)).wait();
    }
    own.finish();
  });
  return values_of.front();
}

TEST(LocalQueues, SumWhatQueuesHaveMadeByThen) {
  EXPECT_THAT(sums_in_rounds(3, false), ElementsAre(132, 144, 156, 168, 180));
}

TEST(LocalQueues, GiveOtherSumsWhereQueuesDoNotWait) {
  EXPECT_THAT(sums_in_rounds(3, true), testing::Not(ElementsAre(132, 144, 156, 168, 180)));
}

TEST(LocalQueues, SendWhatTheSendersQueueHasMade) {
  ThreadDevice device;
  EXPECT_THAT(run_ranks(2,
                        [&](Communicator& all) {
                          const QueuedRank own(all, device, {.delay = all.index() == 0 ? 3ms : 0ms});
                          std::vector<double> values(4);
                          for (Tag tag = 1; tag <= 3; ++tag) {
                            if (all.index() == 0) {
                              own.queue.put([&values, tag] { values.assign(4, static_cast<double>(tag)); });
                              own.ranks->start_send(1, tag, doubles(values)).wait();
                            } else {
                              own.ranks->start_receive(0, tag, doubles(values)).wait();
                              own.queue.put([&values, tag] { EXPECT_THAT(values, Each(tag)); });
                            }
                          }
                          own.finish();
                        }),
              Each(""));
}

TEST(LocalQueues, LetASenderGoOnBeforeItsReceiverComes) {
  ThreadDevice device;
  EXPECT_THAT(run_ranks(2,
                        [&](Communicator& all) {
                          const QueuedRank own(all, device);
                          std::vector<double> sent(2, 1.0 + static_cast<double>(all.index())), come(2);
                          Completion send = own.ranks->start_send(1 - all.index(), 7, doubles(sent));
                          own.ranks->start_receive(1 - all.index(), 7, doubles(come)).wait();
                          send.wait();
                          own.finish();
                          EXPECT_THAT(come, Each(2.0 - static_cast<double>(all.index())));
                        }),
              Each(""));
}

TEST(LocalQueues, ScatterGatherBroadcastAndExchange) {
  ThreadDevice device;
  EXPECT_THAT(run_ranks(3,
                        [&](Communicator& all) {
                          const QueuedRank own(all, device, {.delay = 1ms * all.index()});
                          const std::vector<std::size_t> counts{1, 0, 3};
                          const auto index = static_cast<double>(all.index());
                          std::vector<double> values(4), gathered(4), told(1), exchanged(3);
                          own.queue.put([&] {
                            std::iota(values.begin(), values.end(), 10 * index);
                            told[0] = index;
                          });
                          std::vector<double> part(counts[all.index()]);
                          own.ranks->start_reduce_scatter(doubles(values), doubles(part), counts, 1).wait();
                          own.ranks->start_all_gather(doubles(part), doubles(gathered), counts, 2).wait();
                          own.ranks->start_broadcast(doubles(told), 2, 3).wait();
                          const std::vector<std::size_t> ones(3, 1);
                          own.ranks
                              ->start_all_to_all(elements_of(std::span<const double>(values).first(3)), ones,
                                                 doubles(exchanged), ones, 4)
                              .wait();
                          own.finish();
                          EXPECT_THAT(gathered, ElementsAre(30, 33, 36, 39));
                          EXPECT_THAT(told, ElementsAre(2));
                          EXPECT_THAT(exchanged, ElementsAre(index, 10 + index, 20 + index));
                        }),
              Each(""));
}

TEST(LocalQueues, PollInPlaceOfWaiting) {
  ThreadDevice device;
  EXPECT_THAT(run_ranks(2,
                        [&](Communicator& all) {
                          const QueuedRank own(all, device);
                          std::vector<double> values(1, 1.0);
                          Completion sum = own.ranks->start_all_reduce(doubles(values), 1);
                          while (!sum.test()) std::this_thread::yield();
                          Completion message = all.index() == 0
                                                   ? own.ranks->start_send(1, 2, doubles(values))
                                                   : own.ranks->start_receive(0, 2, doubles(values));
                          while (!message.test()) std::this_thread::yield();
                          own.finish();
                          EXPECT_THAT(values, ElementsAre(2));
                        }),
              Each(""));
}

TEST(LocalQueues, NameTheRanksThatDisagree) {
  ThreadDevice device;
  const std::vector<std::string> errors = run_ranks(2, [&](Communicator& all) {
    const QueuedRank own(all, device);
    std::vector<double> values(1 + all.index());
    own.ranks->start_all_reduce(doubles(values), 1).wait();
  });
  EXPECT_THAT(errors, Each(HasSubstr("rank 0")));
}

TEST(LocalQueues, WakeWhoWaitsForARankThatFailed) {
  ThreadDevice device;
  const std::vector<std::string> errors = run_ranks(4, [&](Communicator& all) {
    const QueuedRank own(all, device);
    std::vector<double> values(1);
    switch (all.index()) {
      case 0:
        return own.ranks->start_receive(3, 1, doubles(values)).wait();
      case 1:
        return own.ranks->start_send(3, 1, doubles(values)).wait();
      case 2:
        return own.ranks->start_barrier(0).wait();
      default:
        std::this_thread::sleep_for(10ms);
        all.abort_all({3}, "it had enough");
    }
  });
  for (std::size_t rank = 0; rank < 3; ++rank)
    EXPECT_THAT(errors[rank], HasSubstr("rank 3 failed: it had enough")) << rank;
}

}  // namespace
}  // namespace plenum::comm

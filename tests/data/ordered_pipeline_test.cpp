#include "plenum/data/corpus/ordered_pipeline.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace plenum::data {
namespace {

/// Squares 0 … count-1, and throws at a number where asked.
std::vector<int> run_squares(std::size_t num_workers, int count, int producer_throws, int worker_throws,
                             int consumer_throws) {
  int next = 0;
  std::vector<int> results;
  OrderedPipeline<int, int> pipeline(num_workers);
  pipeline.run(
      [&](int& item) {
        if (next == producer_throws) throw std::runtime_error("producer");
        item = next++;
        return item < count;
      },
      [&] {
        return [&](int item, int& result) {
          if (item % 5 == 0) std::this_thread::yield();
          if (item == worker_throws) throw std::runtime_error("worker");
          result = item * item;
        };
      },
      [&](int result) {
        if (result == consumer_throws * consumer_throws && consumer_throws >= 0)
          throw std::runtime_error("consumer");
        EXPECT_EQ(result, static_cast<int>(results.size() * results.size()));
        results.push_back(result);
      });
  return results;
}

std::string failure_of(std::size_t num_workers, int producer, int worker, int consumer) {
  try {
    run_squares(num_workers, 100, producer, worker, consumer);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

TEST(OrderedPipeline, KeepsTheOrderForAnyNumberOfWorkers) {
  for (const std::size_t num_workers : {1, 2, 7}) {
    for (const int count : {0, 1, 3, 500}) {
      EXPECT_EQ(run_squares(num_workers, count, -1, -1, -1).size(), static_cast<std::size_t>(count));
    }
  }
}

TEST(OrderedPipeline, ThrowsWhatItsPartsThrowAtTheItemsTurn) {
  for (const std::size_t num_workers : {1, 3}) {
    for (int round = 0; round < 50; ++round) {
      ASSERT_EQ(failure_of(num_workers, 20, -1, -1), "producer");
      ASSERT_EQ(failure_of(num_workers, -1, 20, -1), "worker");
      ASSERT_EQ(failure_of(num_workers, -1, -1, 20), "consumer");
      ASSERT_EQ(failure_of(num_workers, 30, 20, -1), "worker");
      ASSERT_EQ(failure_of(num_workers, 20, 30, -1), "producer");
    }
  }
}

TEST(OrderedPipeline, ThrowsWhenAWorkerCannotStart) {
  OrderedPipeline<int, int> pipeline(2);
  const auto start = [&] {
    pipeline.run([](int& item) { return item = 1, true; },
                 []() -> void (*)(int, int&) { throw std::runtime_error("no worker"); }, [](int) {});
  };
  EXPECT_THROW(start(), std::runtime_error);
}

TEST(OrderedPipeline, HoldsOnlyAFewItemsAtATime) {
  std::atomic<int> alive = 0;
  int most = 0;
  int next = 0;
  OrderedPipeline<int, int> pipeline(2);
  pipeline.run(
      [&](int& item) {
        most = std::max(most, ++alive);
        item = next++;
        return item < 1000;
      },
      [] { return [](int item, int& result) { result = item; }; }, [&](int) { --alive; });
  EXPECT_LE(most, 8);
}

TEST(OrderedPipeline, UsesTheSameItemsAndResultsOverAndOver) {
  struct Buffer {
    int uses = 0;
  };
  int next = 0;
  int uses = 0;
  OrderedPipeline<Buffer, Buffer> pipeline(2);
  pipeline.run(
      [&](Buffer& item) { return ++item.uses, next++ < 600; },
      [] { return [](const Buffer& item, Buffer& result) { result.uses += item.uses > 0 ? 1 : 0; }; },
      [&](Buffer& result) { uses = std::max(uses, result.uses); });
  EXPECT_EQ(uses, 100);
}

}  // namespace
}  // namespace plenum::data

#include "plenum/base/parallel_for.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace plenum::base {
namespace {

TEST(ParallelFor, VisitsEachIndexOnce) {
  for (const std::size_t count : {0, 1, 5, 1000}) {
    for (const std::size_t num_threads : {1, 3, 8}) {
      std::vector<std::atomic<int>> visits(count);
      parallel_for(count, num_threads, [&](std::size_t index) { ++visits[index]; });
      for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit, 1);
    }
  }
}

TEST(ParallelFor, ThrowsWhatAnActionThrowsAndBeginsNoMore) {
  for (const std::size_t num_threads : {1, 4}) {
    std::atomic<int> begun = 0;
    const auto run = [&] {
      parallel_for(1'000'000, num_threads, [&](std::size_t index) {
        ++begun;
        if (index == 10) throw std::runtime_error("stop");
      });
    };
    EXPECT_THROW(run(), std::runtime_error);
    EXPECT_LT(begun, 1'000'000);
  }
}

}  // namespace
}  // namespace plenum::base

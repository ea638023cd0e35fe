#include "plenum/base/thread_pool.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace plenum::base {
namespace {

TEST(ThreadPool, DoesEveryTaskOnceInEveryRun) {
  for (const std::size_t num_threads : {1, 2, 5}) {
    ThreadPool pool(num_threads);
    for (std::size_t count = 0; count < 200; ++count) {
      std::vector<std::atomic<int>> done(count);
      pool.run(count, [&](std::size_t task, std::size_t thread) {
        ASSERT_LT(thread, num_threads);
        ++done[task];
      });
      for (const auto& times : done) EXPECT_EQ(times, 1);
    }
  }
}

TEST(ThreadPool, ThrowsWhatATaskThrowsAndGoesOn) {
  ThreadPool pool(3);
  EXPECT_THROW(pool.run(100,
                        [](std::size_t task, std::size_t) {
                          if (task == 7) throw std::runtime_error("seven");
                        }),
               std::runtime_error);
  std::atomic<int> done = 0;
  pool.run(100, [&](std::size_t, std::size_t) { ++done; });
  EXPECT_EQ(done, 100);
}

}  // namespace
}  // namespace plenum::base

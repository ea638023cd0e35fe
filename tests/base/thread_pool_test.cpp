#include "plenum/base/thread_pool.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "plenum/base/check.h"

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

// For a process of its own: leaves this one room for the stacks of a few more threads.
void limit_memory() {
  constexpr rlim_t kRoom = 64 << 20;
  rlim_t num_pages = 0;
  std::ifstream("/proc/self/statm") >> num_pages;
  const rlim_t bytes = num_pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + kRoom;
  const rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
  setrlimit(RLIMIT_AS, &limit);
}

TEST(ThreadPoolDeathTest, SaysThatThereAreTooManyThreadsInsteadOfWaitingForThem) {
  constexpr unsigned kSecondsToHang = 60;
  const auto start_too_many = [] {
    alarm(kSecondsToHang);
    limit_memory();
    try {
      const ThreadPool pool(1000);
    } catch (const UserError& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(2);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(start_too_many(), testing::ExitedWithCode(2), "cannot start so many threads.*1000");
}

}  // namespace
}  // namespace plenum::base

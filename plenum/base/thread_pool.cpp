#include "plenum/base/thread_pool.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "plenum/base/check.h"

namespace plenum::base {

/// Workers sleep on a counter of jobs. A job is a task with a count; whoever comes takes the next number
/// until none is left. The caller works too, and when no number is left it closes the door: it waits for the
/// workers that are inside, but not for those that a busy machine has not yet woken.
class ThreadPool::Workers {
 public:
  explicit Workers(std::size_t num_threads) {
    try {
      threads_.reserve(num_threads - 1);
      for (std::size_t thread = 1; thread < num_threads; ++thread) {
        threads_.emplace_back([this, thread] { serve(thread); });
      }
    } catch (const std::exception& error) {
      // No destructor runs for an object that was not finished, but threads_ waits for those it has.
      end();
      fail("cannot start so many threads, ask for fewer: {} ({})", num_threads, error.what());
    }
  }

  ~Workers() { end(); }

  void run(std::size_t count, Task task) {
    task_.emplace(task);
    count_ = count;
    next_.store(0, std::memory_order_relaxed);
    door_.store(kOpen, std::memory_order_release);
    job_.fetch_add(1, std::memory_order_release);
    job_.notify_all();
    work(0);
    door_.fetch_and(~kOpen, std::memory_order_acq_rel);
    await_workers();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  // A kernel follows the last one within microseconds; going to sleep and waking up takes tens of them.
  static constexpr int kSpins = 4000;
  static constexpr std::uint32_t kOpen = std::uint32_t{1} << 31;

  /// Lets every worker return.
  void end() {
    is_ending_ = true;
    job_.fetch_add(1, std::memory_order_release);
    job_.notify_all();
  }

  void serve(std::size_t thread) {
    std::uint32_t seen = 0;
    while (true) {
      seen = await_job(seen);
      if (is_ending_) return;
      if (!enter()) continue;
      work(thread);
      if (door_.fetch_sub(1, std::memory_order_acq_rel) == 1) door_.notify_one();
    }
  }

  /// False if the door is closed.
  bool enter() {
    std::uint32_t door = door_.load(std::memory_order_relaxed);
    while ((door & kOpen) != 0) {
      if (door_.compare_exchange_weak(door, door + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  std::uint32_t await_job(std::uint32_t seen) {
    for (int spin = 0; spin < kSpins; ++spin) {
      const std::uint32_t job = job_.load(std::memory_order_acquire);
      if (job != seen) return job;
      __builtin_ia32_pause();
    }
    job_.wait(seen, std::memory_order_acquire);
    return job_.load(std::memory_order_acquire);
  }

  void await_workers() {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (door_.load(std::memory_order_acquire) == 0) return;
      __builtin_ia32_pause();
    }
    for (std::uint32_t inside = door_.load(std::memory_order_acquire); inside != 0;
         inside = door_.load(std::memory_order_acquire)) {
      door_.wait(inside, std::memory_order_acquire);
    }
  }

  void work(std::size_t thread) {
    try {
      for (std::size_t task = next_++; task < count_; task = next_++) (*task_)(task, thread);
    } catch (...) {
      next_ = count_;
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  std::optional<Task> task_;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::uint32_t> door_ = 0;  ///< the number of workers inside, and kOpen
  std::atomic<std::uint32_t> job_ = 0;
  std::atomic<bool> is_ending_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;
};

ThreadPool::ThreadPool(std::size_t num_threads) : num_threads_(num_threads) {
  check(num_threads > 0, "a thread pool has at least one thread: {}", num_threads);
  if (num_threads > 1) workers_ = std::make_unique<Workers>(num_threads);
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::run(std::size_t count, Task task) {
  if (count > 1 && workers_) return workers_->run(count, task);
  for (std::size_t i = 0; i < count; ++i) task(i, 0);
}

}  // namespace plenum::base

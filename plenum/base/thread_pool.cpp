#include "plenum/base/thread_pool.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "plenum/base/check.h"

namespace plenum::base {

/// Workers sleep on a counter of jobs. A job is a task with a count; everyone takes the next number until
/// none is left, and the last to leave wakes the caller.
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
    num_working_.store(threads_.size(), std::memory_order_relaxed);
    job_.fetch_add(1, std::memory_order_release);
    job_.notify_all();
    work(0);
    await_workers();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  // A kernel follows the last one within microseconds; going to sleep and waking up takes tens of them.
  static constexpr int kSpins = 4000;

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
      work(thread);
      if (num_working_.fetch_sub(1, std::memory_order_acq_rel) == 1) num_working_.notify_one();
    }
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
      if (num_working_.load(std::memory_order_acquire) == 0) return;
      __builtin_ia32_pause();
    }
    for (std::size_t left = num_working_.load(std::memory_order_acquire); left != 0;
         left = num_working_.load(std::memory_order_acquire)) {
      num_working_.wait(left, std::memory_order_acquire);
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
  std::atomic<std::size_t> num_working_ = 0;
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

#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace plenum::data {

/// Runs items through workers in parallel and hands the results on in the order of the items, so that the
/// outcome does not depend on the number of threads. A few items and results per worker exist, which are used
/// over and over, so that their buffers are allocated once.
///
/// `produce(Item&) -> bool` runs on a thread of its own and overwrites an item; `make_worker()` is called
/// once on each worker's thread and gives a function (const Item&, Result&) that overwrites a result;
/// `consume(Result&)` runs on the calling thread. An exception from any of them ends everything and is thrown
/// from here; one about an item is thrown at that item's turn, so that the same input always fails in the
/// same way.
template <typename Item, typename Result>
class OrderedPipeline {
 public:
  explicit OrderedPipeline(std::size_t num_workers)
      : num_workers_(num_workers), slots_(2 * num_workers + 2) {}

  template <typename Produce, typename MakeWorker, typename Consume>
  void run(Produce produce, MakeWorker make_worker, Consume consume) {
    std::vector<std::jthread> threads;
    const Stopper stop_on_exit{*this};  // before the threads are joined
    threads.emplace_back([&] { run_producer(produce); });
    for (std::size_t i = 0; i < num_workers_; ++i) {
      threads.emplace_back([&] { run_worker(make_worker); });
    }
    run_consumer(consume);
    stop();
    threads.clear();
  }

 private:
  /// Belongs to the producer, then to one worker, then to the consumer, and then to the producer again.
  struct Slot {
    Item item{};
    Result result{};
    std::exception_ptr error;
    bool done = false;
  };

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    has_room_.notify_all();
    has_work_.notify_all();
  }

  /// Ends the threads when the consumer throws: they wait for room or work otherwise.
  struct Stopper {
    OrderedPipeline& pipeline;
    ~Stopper() { pipeline.stop(); }
  };

  Slot& slot(std::uint64_t index) { return slots_[index % slots_.size()]; }

  template <typename Produce>
  void run_producer(Produce& produce) {
    bool more = true;
    while (more) {
      {
        std::unique_lock lock(mutex_);
        has_room_.wait(lock, [&] { return stopped_ || produced_ - consumed_ < slots_.size(); });
        if (stopped_) return;
      }
      Slot& next = slot(produced_);
      try {
        more = produce(next.item);
      } catch (...) {
        next.error = std::current_exception();
        more = false;
      }
      const std::lock_guard lock(mutex_);
      next.done = next.error != nullptr;
      if (more || next.done) ++produced_;
      exhausted_ = !more;
      if (more) {
        has_work_.notify_one();
      } else {
        has_work_.notify_all();
        has_result_.notify_one();
      }
    }
  }

  template <typename MakeWorker>
  void run_worker(MakeWorker& make_worker) {
    std::optional<decltype(make_worker())> worker;
    try {
      worker.emplace(make_worker());
    } catch (...) {
      const std::lock_guard lock(mutex_);
      worker_error_ = std::current_exception();
      has_result_.notify_one();
      return;
    }
    std::unique_lock lock(mutex_);
    while (true) {
      has_work_.wait(lock, [&] { return stopped_ || claimed_ < produced_ || exhausted_; });
      if (stopped_ || claimed_ == produced_) return;
      const std::uint64_t index = claimed_++;
      Slot& claimed = slot(index);
      if (claimed.done) continue;
      lock.unlock();
      try {
        (*worker)(std::as_const(claimed.item), claimed.result);
      } catch (...) {
        claimed.error = std::current_exception();
      }
      lock.lock();
      claimed.done = true;
      if (index == consumed_) has_result_.notify_one();
    }
  }

  template <typename Consume>
  void run_consumer(Consume& consume) {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        has_result_.wait(lock, [&] {
          return worker_error_ || (consumed_ < produced_ && slot(consumed_).done) ||
                 (exhausted_ && consumed_ == produced_);
        });
        if (worker_error_) std::rethrow_exception(worker_error_);
        if (consumed_ == produced_) return;
      }
      Slot& next = slot(consumed_);
      if (next.error) std::rethrow_exception(next.error);
      consume(next.result);
      const std::lock_guard lock(mutex_);
      next.done = false;
      ++consumed_;
      has_room_.notify_one();
    }
  }

  std::size_t num_workers_;
  std::vector<Slot> slots_;
  std::mutex mutex_;  ///< of everything below, and of Slot::done
  std::condition_variable has_room_;
  std::condition_variable has_work_;
  std::condition_variable has_result_;
  std::uint64_t produced_ = 0;
  std::uint64_t claimed_ = 0;
  std::uint64_t consumed_ = 0;
  std::exception_ptr worker_error_;
  bool exhausted_ = false;
  bool stopped_ = false;
};

}  // namespace plenum::data

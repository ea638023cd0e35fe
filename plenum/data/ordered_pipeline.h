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
/// outcome does not depend on the number of threads. At most a few items per worker exist at a time.
///
/// `produce(Item&) -> bool` runs on a thread of its own; `make_worker()` is called once on each worker's
/// thread and gives a function Item -> Result; `consume(Result&&)` runs on the calling thread. An exception
/// from any of them ends everything and is thrown from here; one about an item is thrown at that item's turn,
/// so that the same input always fails in the same way.
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
  struct Slot {
    std::optional<Item> item;
    std::optional<Result> result;
    std::exception_ptr error;
    bool done = false;
  };

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

  /// Ends the threads when the consumer throws: they wait for room or work otherwise.
  struct Stopper {
    OrderedPipeline& pipeline;
    ~Stopper() { pipeline.stop(); }
  };

  Slot& slot(std::uint64_t index) { return slots_[index % slots_.size()]; }

  template <typename Produce>
  void run_producer(Produce& produce) {
    while (true) {
      Item item;
      std::exception_ptr error;
      bool more = false;
      try {
        more = produce(item);
      } catch (...) {
        error = std::current_exception();
      }
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || produced_ - consumed_ < slots_.size(); });
      if (stopped_) return;
      if (more) {
        slot(produced_++).item.emplace(std::move(item));
      } else if (error) {
        slot(produced_).error = error;
        slot(produced_++).done = true;
      }
      exhausted_ = !more;
      changed_.notify_all();
      if (!more) return;
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
      changed_.notify_all();
      return;
    }
    while (true) {
      std::uint64_t index = 0;
      std::optional<Item> item;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopped_ || claimed_ < produced_ || exhausted_; });
        if (stopped_ || claimed_ == produced_) return;
        index = claimed_++;
        if (slot(index).done) continue;
        item = std::exchange(slot(index).item, std::nullopt);
      }
      std::optional<Result> result;
      std::exception_ptr error;
      try {
        result.emplace((*worker)(std::move(*item)));
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      slot(index).result = std::move(result);
      slot(index).error = error;
      slot(index).done = true;
      changed_.notify_all();
    }
  }

  template <typename Consume>
  void run_consumer(Consume& consume) {
    while (true) {
      std::optional<Result> result;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] {
          return worker_error_ || (consumed_ < produced_ && slot(consumed_).done) ||
                 (exhausted_ && consumed_ == produced_);
        });
        if (worker_error_) std::rethrow_exception(worker_error_);
        if (consumed_ == produced_) return;
        Slot& next = slot(consumed_);
        if (next.error) std::rethrow_exception(next.error);
        result = std::exchange(next.result, std::nullopt);
        next.done = false;
      }
      consume(std::move(*result));
      const std::lock_guard lock(mutex_);
      ++consumed_;
      changed_.notify_all();
    }
  }

  std::size_t num_workers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::uint64_t produced_ = 0;
  std::uint64_t claimed_ = 0;
  std::uint64_t consumed_ = 0;
  std::exception_ptr worker_error_;
  bool exhausted_ = false;
  bool stopped_ = false;
};

}  // namespace plenum::data

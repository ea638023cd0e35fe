#include "plenum/data/batches/prefetch.h"

#include <utility>

#include <pthread.h>

#include "plenum/batch/step_batch.h"

namespace plenum::data {

Prefetch::Prefetch(const StepBatchSource& source, std::uint64_t first_step, std::optional<base::Rank> rank)
    : source_(source),
      rank_(rank),
      thread_([this, first_step](const std::stop_token& stop) { run(stop, first_step); }) {}

std::vector<batch::StepBatch> Prefetch::make(std::uint64_t step) const {
  if (!rank_) return source_.make(step);
  std::vector<batch::StepBatch> batches;
  batches.push_back(source_.make(step, *rank_));
  return batches;
}

void Prefetch::run(const std::stop_token& stop, std::uint64_t step) {
  pthread_setname_np(pthread_self(), "prefetch");  // for whoever looks at the threads of the process
  std::unique_lock lock(mutex_);
  // After a stop the wait still tells whether there is room.
  while (changed_.wait(lock, stop, [&] { return made_.size() < kStepsAhead; }) && !stop.stop_requested()) {
    lock.unlock();
    std::vector<batch::StepBatch> next;
    std::exception_ptr error;
    try {
      next = make(step);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    ++step;
    error_ = error;
    if (!error) made_.push_back(std::move(next));
    changed_.notify_all();
    if (error) return;
  }
}

std::vector<batch::StepBatch> Prefetch::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !made_.empty() || error_; });
  if (made_.empty()) std::rethrow_exception(error_);
  std::vector<batch::StepBatch> next = std::move(made_.front());
  made_.pop_front();
  changed_.notify_all();
  return next;
}

}  // namespace plenum::data

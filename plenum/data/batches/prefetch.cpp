#include "plenum/data/batches/prefetch.h"

#include <utility>

#include <pthread.h>

#include "plenum/batch/step_batch.h"

namespace plenum::data {

Prefetch::Prefetch(const StepBatchSource& source, std::uint64_t first_step, std::optional<base::Rank> rank,
                   SequenceExchange* exchange)
    : source_(source),
      rank_(rank),
      exchange_(exchange),
      thread_([this, first_step](const std::stop_token& stop) { run(stop, first_step); }) {}

std::vector<batch::StepBatch> Prefetch::make(std::uint64_t step) const {
  if (!rank_) return source_.make(step);
  std::vector<batch::StepBatch> batches;
  if (exchange_ != nullptr) {
    const StepArrangement arrangement = source_.arrange(step);
    batches.push_back(source_.build(arrangement, *rank_, exchange_->bring(arrangement)));
  } else {
    batches.push_back(source_.make(step, *rank_));
  }
  return batches;
}

void Prefetch::run(const std::stop_token& stop, std::uint64_t step) {
  pthread_setname_np(pthread_self(), "prefetch");  // for whoever looks at the threads of the process
  std::unique_lock lock(mutex_);
  // After a stop the wait still tells whether there is room. Others count on an exchange for which there is.
  const auto goes_on = [&] { return exchange_ != nullptr || !stop.stop_requested(); };
  while (changed_.wait(lock, stop, [&] { return made_.size() < kStepsAhead; }) && goes_on()) {
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

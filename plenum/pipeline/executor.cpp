#include "plenum/pipeline/executor.h"

#include <algorithm>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/pipeline/measured_times.h"
#include "plenum/pipeline/watchdog.h"
#include "plenum/schedule/check.h"

namespace plenum::pipeline {

using schedule::kNumLanes;
using schedule::Lane;
using schedule::Rank;

namespace {

/// Before anything is derived from it.
const schedule::Schedule& required(const schedule::Schedule& schedule, ExecutorOptions::Checked checked) {
  schedule::require_well_formed(schedule);
  if (checked == ExecutorOptions::Checked::Yes) schedule::require_checked(schedule);
  return schedule;
}

}  // namespace

Executor::Executor(const schedule::Schedule& schedule, std::vector<StageProgram*> programs,
                   ExecutorOptions options)
    : schedule_(required(schedule, options.checked)),
      options_(std::move(options)),
      dataflow_(schedule),
      world_(schedule.ranks.size()),
      next_step_(options_.first_step) {
  base::check(programs.size() == schedule.ranks.size(), "there must be a program for each rank: {} of {}",
              programs.size(), schedule.ranks.size());
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    communicators_.push_back(world_.communicator(Rank::at(rank)));
    ranks_.push_back(std::make_unique<RankExecutor>(schedule_, dataflow_, Rank::at(rank), *programs[rank],
                                                    *communicators_.back(), options_.first_step));
  }
}

Executor::~Executor() {
  join_lanes();
}

void Executor::run(std::uint64_t num_steps) {
  base::check(!failure_, "an executor that failed cannot run on");
  const StepRange range = range_of(num_steps);
  for (const std::unique_ptr<RankExecutor>& rank : ranks_) rank->prepare(range);
  start_lanes();
  watch();
  if (failure_) throw ExecutionError(*failure_);
  next_step_ = range.end;
  measured_ = measure(schedule_, dataflow_, ranks_, range.timed_begin);
}

StepRange Executor::range_of(std::uint64_t num_steps) const {
  StepRange range{.begin = next_step_, .end = next_step_ + num_steps, .timed_begin = next_step_};
  const std::uint64_t cycle = schedule_.num_steps();
  const std::uint64_t end_of_cycles = range.end / cycle * cycle;
  if (end_of_cycles >= range.begin + cycle) range.timed_begin = end_of_cycles - cycle;
  return range;
}

void Executor::start_lanes() {
  for (const std::unique_ptr<RankExecutor>& rank : ranks_) {
    for (std::size_t i = 0; i < kNumLanes; ++i) num_running_ += rank->has_work(static_cast<Lane>(i));
  }
  for (const std::unique_ptr<RankExecutor>& rank : ranks_) {
    for (std::size_t i = 0; i < kNumLanes; ++i) {
      const Lane lane = static_cast<Lane>(i);
      if (!rank->has_work(lane)) continue;
      threads_.emplace_back([this, &rank = *rank, lane] { run_lane(rank, lane); });
    }
  }
}

void Executor::run_lane(RankExecutor& rank, Lane lane) {
  try {
    rank.run_lane(lane, stop_.get_token());
  } catch (const ExecutionError& error) {
    fail(error.failure());
  }
  const std::lock_guard lock(mutex_);
  --num_running_;
  changed_.notify_all();
}

void Executor::fail(Failure failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
    changed_.notify_all();
  }
  stop_.request_stop();
  for (const std::unique_ptr<RankExecutor>& rank : ranks_) rank->close();
  world_.abort_all(failure.rank, failure.message);
  if (options_.on_failure) options_.on_failure(failure);
}

void Executor::watch() {
  using std::chrono::milliseconds;
  const milliseconds interval = std::clamp(options_.hang_limit / 8, milliseconds(1), milliseconds(1000));
  Watchdog watchdog(ranks_, options_.hang_limit);
  std::unique_lock lock(mutex_);
  const auto is_over = [this] { return num_running_ == 0 || failure_; };
  while (!changed_.wait_for(lock, interval, is_over)) {
    lock.unlock();
    std::optional<Failure> hang = watchdog.look(Clock::now());
    if (hang) fail(std::move(*hang));
    lock.lock();
  }
  const bool has_ended = changed_.wait_for(lock, options_.stop_limit, [this] { return num_running_ == 0; });
  lock.unlock();
  if (has_ended) join_lanes();
}

void Executor::join_lanes() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace plenum::pipeline

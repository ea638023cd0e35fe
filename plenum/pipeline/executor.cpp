#include "plenum/pipeline/executor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/comm/local/local_world.h"
#include "plenum/pipeline/measured_times.h"
#include "plenum/pipeline/watchdog.h"
#include "plenum/schedule/check/check.h"

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

std::vector<std::unique_ptr<comm::Communicator>> threads_as_ranks(std::size_t num_ranks) {
  comm::local::LocalWorld world(num_ranks);
  std::vector<std::unique_ptr<comm::Communicator>> communicators;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    communicators.push_back(world.communicator(Rank::at(rank)));
  }
  return communicators;
}

}  // namespace

Executor::Executor(const schedule::Schedule& schedule, std::vector<StageProgram*> programs,
                   ExecutorOptions options)
    : Executor(schedule, std::move(programs), threads_as_ranks(schedule.ranks.size()), std::move(options)) {}

Executor::Executor(const schedule::Schedule& schedule, std::vector<StageProgram*> programs,
                   std::vector<std::unique_ptr<comm::Communicator>> communicators, ExecutorOptions options)
    : schedule_(required(schedule, options.checked)),
      options_(std::move(options)),
      dataflow_(schedule),
      communicators_(std::move(communicators)),
      next_step_(options_.first_step) {
  const std::size_t num_ranks = schedule.ranks.size();
  base::check(programs.size() == num_ranks && communicators_.size() == num_ranks,
              "there must be a program and a communicator for each rank: {} and {} of {}", programs.size(),
              communicators_.size(), num_ranks);
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    comm::Communicator& ranks = *communicators_[rank];
    base::check(ranks.index() == rank && ranks.size() == num_ranks,
                "communicators must be in the order of their ranks: {} of {} in place of {} of {}",
                ranks.index(), ranks.size(), rank, num_ranks);
    ranks_.push_back(std::make_unique<RankExecutor>(schedule_, dataflow_, Rank::at(rank), *programs[rank],
                                                    ranks, options_.first_step));
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
  std::vector<std::pair<RankExecutor*, Lane>> lanes;
  for (const std::unique_ptr<RankExecutor>& rank : ranks_) {
    for (std::size_t i = 0; i < kNumLanes; ++i) {
      if (rank->has_work(static_cast<Lane>(i))) lanes.emplace_back(rank.get(), static_cast<Lane>(i));
    }
  }
  threads_.reserve(lanes.size());
  num_running_ = lanes.size();
  may_lanes_begin_ = false;
  try {
    for (const auto& [rank, lane] : lanes) {
      threads_.emplace_back([this, rank = rank, lane = lane] { run_lane(*rank, lane); });
    }
  } catch (const std::exception& error) {
    const std::size_t num_started = threads_.size();
    {
      const std::lock_guard lock(mutex_);
      num_running_ -= lanes.size() - num_started;
    }
    const auto& [rank, lane] = lanes[num_started];
    return fail(rank->failure_at(lane, fmt::format("cannot start its thread, {} of {} are started: {}",
                                                   num_started, lanes.size(), error.what())));
  }
  const std::lock_guard lock(mutex_);
  may_lanes_begin_ = true;
  changed_.notify_all();
}

bool Executor::await_start() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return may_lanes_begin_ || failure_; });
  return may_lanes_begin_;
}

void Executor::run_lane(RankExecutor& rank, Lane lane) {
  try {
    if (await_start()) rank.run_lane(lane, stop_.get_token());
  } catch (const ExecutionError& error) {
    if (error.failure().aborted_by.is_none()) {
      fail(error.failure());
    } else {
      note_abort(error.failure());
    }
  }
  const std::lock_guard lock(mutex_);
  --num_running_;
  changed_.notify_all();
}

void Executor::fail(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
    changed_.notify_all();
  }
  stop_lanes(failure);
  if (options_.on_failure) options_.on_failure(failure);
}

void Executor::note_abort(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    // Of those who were told, the rank that told them knows best where.
    const bool is_from_itself = failure.rank == failure.aborted_by;
    if (!aborted_ || (is_from_itself && aborted_->rank != failure.rank)) aborted_ = failure;
    changed_.notify_all();
  }
  stop_lanes(failure);
}

void Executor::stop_lanes(const Failure& failure) {
  stop_.request_stop();
  for (const std::unique_ptr<RankExecutor>& rank : ranks_) rank->close();
  communicators_.front()->abort_all(failure.rank, failure.message);
}

void Executor::watch() {
  using std::chrono::milliseconds;
  const milliseconds interval = std::clamp(options_.hang_limit / 8, milliseconds(1), milliseconds(1000));
  Watchdog watchdog(ranks_, options_.hang_limit);
  std::unique_lock lock(mutex_);
  const auto is_over = [this] { return num_running_ == 0 || failure_ || aborted_; };
  while (!changed_.wait_for(lock, interval, is_over)) {
    lock.unlock();
    const std::optional<Failure> hang = watchdog.look(Clock::now());
    if (hang) fail(*hang);
    lock.lock();
  }
  const bool has_ended = changed_.wait_for(lock, options_.stop_limit, [this] { return num_running_ == 0; });
  const std::optional<Failure> aborted = failure_ ? std::nullopt : aborted_;
  lock.unlock();
  if (aborted) fail(*aborted);
  if (has_ended) join_lanes();
}

void Executor::join_lanes() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace plenum::pipeline

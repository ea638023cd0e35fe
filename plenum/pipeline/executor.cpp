#include "plenum/pipeline/executor.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>

#include "plenum/base/check.h"
#include "plenum/comm/local/local_world.h"
#include "plenum/pipeline/emulated_communicator.h"
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

/// For whoever looks at the threads of the process.
void name_thread(Rank rank, Lane lane) {
  constexpr std::size_t kLongest = 15;
  const std::string name = fmt::format("rank{} {}", rank.value, schedule::lane_name(lane));
  pthread_setname_np(pthread_self(), name.substr(0, kLongest).c_str());
}

}  // namespace

std::vector<LocalRank> local_ranks(const std::vector<StageProgram*>& programs, std::size_t num_slices,
                                   const std::optional<plan::Link>& emulated_link) {
  comm::local::LocalWorld world(programs.size());
  std::vector<LocalRank> ranks;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    std::unique_ptr<comm::Communicator> own = world.communicator(Rank::at(i));
    if (emulated_link) own = std::make_unique<EmulatedCommunicator>(std::move(own), *emulated_link);
    ranks.push_back(rank_of_world(*programs[i], std::move(own), num_slices));
  }
  return ranks;
}

LocalRank rank_of_world(StageProgram& program, std::unique_ptr<comm::Communicator> world,
                        std::size_t num_slices) {
  base::check(world->size() % num_slices == 0, "every rank of a schedule has {} slices: {} ranks", num_slices,
              world->size());
  const std::size_t index = world->index();
  LocalRank rank{.rank = Rank::at(index / num_slices), .program = &program};
  if (num_slices == 1) {
    rank.communicator = std::move(world);
    return rank;
  }
  std::vector<std::size_t> same_slice;
  for (std::size_t i = index % num_slices; i < world->size(); i += num_slices) same_slice.push_back(i);
  std::vector<std::size_t> same_rank(num_slices);
  std::iota(same_rank.begin(), same_rank.end(), index / num_slices * num_slices);
  rank.communicator = world->group(same_slice);
  rank.slices = world->group(same_rank);
  rank.everyone = std::move(world);
  return rank;
}

Executor::Executor(const schedule::Schedule& schedule, std::vector<LocalRank> ranks, ExecutorOptions options)
    : schedule_(required(schedule, options.checked)),
      options_(std::move(options)),
      dataflow_(schedule),
      next_step_(options_.first_step) {
  base::check(!ranks.empty(), "an executor needs a rank");
  for (LocalRank& own : ranks) {
    comm::Communicator& all = *communicators_.emplace_back(std::move(own.communicator));
    const bool is_next = ranks_.empty() || ranks_.back()->world_rank() < all.rank_of(all.index());
    base::check(is_next && own.rank.index() < schedule.ranks.size(),
                "ranks must be of the schedule and in order: {} of {}", own.rank.value,
                schedule.ranks.size());
    base::check(all.index() == own.rank.index() && all.size() == schedule.ranks.size(),
                "a rank needs its own communicator of all ranks: {} of {} in place of {} of {}", all.index(),
                all.size(), own.rank.value, schedule.ranks.size());
    RankExecutor& rank = *ranks_.emplace_back(std::make_unique<RankExecutor>(
        schedule_, dataflow_, own.rank, *own.program,
        RankCommunicators{all, std::move(own.slices), std::move(own.everyone)}, options_.first_step));
    for (std::size_t i = 0; i < kNumLanes; ++i) {
      if (rank.has_work(static_cast<Lane>(i))) lanes_.emplace_back(&rank, static_cast<Lane>(i));
    }
  }
}

Executor::~Executor() {
  {
    const std::lock_guard lock(mutex_);
    is_going_ = true;
    range_given_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void Executor::run(std::uint64_t num_steps, DeviceTimes device_times) {
  base::check(!failure_, "an executor that failed cannot run on");
  StepRange range = range_of(num_steps);
  range.has_device_times = device_times == DeviceTimes::Recorded;
  for (const std::unique_ptr<RankExecutor>& rank : ranks_) rank->prepare(range);
  if (threads_.empty()) start_threads();
  if (!failure_) {
    {
      const std::lock_guard lock(mutex_);
      num_running_ = lanes_.size();
      ++num_ranges_;
      range_given_.notify_all();
    }
    watch();
  }
  if (failure_) throw ExecutionError(*failure_);
  next_step_ = range.end;
  timed_begin_ = range.timed_begin;
}

void Executor::await_step(std::uint64_t step) {
  base::check(!failure_, "an executor that failed has no steps to wait for");
  const Clock::time_point begin = Clock::now();
  const std::chrono::milliseconds limit = Watchdog::limit_after(longest_wait_, options_.hang_limit);
  for (const std::unique_ptr<RankExecutor>& rank : ranks_) {
    std::optional<Failure> hang;
    try {
      hang = rank->await_step(step, limit);
    } catch (const std::exception& error) {
      fail(rank->failure_at(Lane::Compute, error.what(), std::current_exception()));
      throw;
    }
    if (!hang) continue;
    fail(*hang);
    if (options_.on_stuck) options_.on_stuck(*hang);
    throw ExecutionError(*hang);
  }
  longest_wait_ = std::max(longest_wait_, std::chrono::duration<double>(Clock::now() - begin));
}

MeasuredCycle Executor::measured(CompleteCycle complete) {
  if (next_step_ > options_.first_step) await_step(next_step_ - 1);
  return measure(schedule_, dataflow_, ranks_, timed_begin_, complete);
}

std::string Executor::where() const {
  std::string text;
  for (const auto& [rank, lane] : lanes_) {
    const LaneState state = rank->progress(lane).state;
    if (state == LaneState::Ended) continue;
    const Failure at = rank->failure_at(lane, {});
    text += fmt::format("{}{}, step {}, {}", text.empty() ? "" : "; ", schedule::lane_name(lane), at.step,
                        at.action);
    if (state != LaneState::Works) text += fmt::format(" waits for {}", rank->awaited_by(lane));
  }
  return text;
}

StepRange Executor::range_of(std::uint64_t num_steps) const {
  StepRange range{.begin = next_step_, .end = next_step_ + num_steps, .timed_begin = next_step_};
  const std::uint64_t cycle = schedule_.num_steps();
  const std::uint64_t end_of_cycles = range.end / cycle * cycle;
  if (end_of_cycles >= range.begin + cycle) range.timed_begin = end_of_cycles - cycle;
  return range;
}

void Executor::start_threads() {
  threads_.reserve(lanes_.size());
  try {
    for (const auto& [rank, lane] : lanes_) {
      threads_.emplace_back([this, rank = rank, lane = lane] { serve_lane(*rank, lane); });
    }
  } catch (const std::exception& error) {
    const auto& [rank, lane] = lanes_[threads_.size()];
    fail(rank->failure_at(lane, fmt::format("cannot start its thread, {} of {} are started: {}",
                                            threads_.size(), lanes_.size(), error.what())));
  }
}

void Executor::serve_lane(RankExecutor& rank, Lane lane) {
  name_thread(rank.world_rank(), lane);
  for (std::uint64_t num_run = 0; await_range(num_run); ++num_run) {
    run_lane(rank, lane);
    const std::lock_guard lock(mutex_);
    if (--num_running_ == 0) changed_.notify_all();
  }
}

bool Executor::await_range(std::uint64_t num_run) {
  std::unique_lock lock(mutex_);
  range_given_.wait(lock, [&] { return num_ranges_ > num_run || is_going_; });
  return num_ranges_ > num_run;
}

void Executor::run_lane(RankExecutor& rank, Lane lane) {
  try {
    rank.run_lane(lane, stop_.get_token());
  } catch (const ExecutionError& error) {
    if (error.failure().aborted_by.is_none()) {
      fail(error.failure());
    } else {
      note_abort(error.failure());
    }
  }
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
  std::optional<Watchdog> watchdog;  // steps that are short need none
  std::unique_lock lock(mutex_);
  const auto is_over = [this] { return num_running_ == 0 || failure_ || aborted_; };
  while (!changed_.wait_for(lock, interval, is_over)) {
    lock.unlock();
    if (!watchdog) watchdog.emplace(ranks_, options_.hang_limit);
    if (const std::optional<Failure> hang = watchdog->look(Clock::now())) fail(*hang);
    for (const std::unique_ptr<RankExecutor>& rank : ranks_) {
      if (const std::optional<Failure> broken = rank->device_failure()) fail(*broken);
    }
    lock.lock();
  }
  const bool has_ended = changed_.wait_for(lock, options_.stop_limit, [this] { return num_running_ == 0; });
  const std::optional<Failure> aborted = failure_ ? std::nullopt : aborted_;
  lock.unlock();
  if (aborted) fail(*aborted);
  const auto is_idle = [](const std::unique_ptr<RankExecutor>& rank) { return rank->is_device_idle(); };
  const bool device_hangs =
      failure_ && failure_->is_hang && !std::all_of(ranks_.begin(), ranks_.end(), is_idle);
  if ((!has_ended || device_hangs) && options_.on_stuck) options_.on_stuck(*failure_);
}

}  // namespace plenum::pipeline

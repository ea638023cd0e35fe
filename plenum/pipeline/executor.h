#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "plenum/base/function_ref.h"
#include "plenum/comm/communicator.h"
#include "plenum/pipeline/failure.h"
#include "plenum/pipeline/rank_executor.h"
#include "plenum/pipeline/stage_program.h"
#include "plenum/plan/link.h"
#include "plenum/schedule/simulate/replay.h"

namespace plenum::pipeline {

struct ExecutorOptions {
  /// Whether the schedule must pass check() before it runs. Without, a damaged one hangs or computes wrong.
  enum class Checked : std::uint8_t { Yes, No } checked = Checked::Yes;
  /// How long an action may take that never ran before, or all lanes wait for each other, before the run is
  /// given up. What ran before is given up sooner (Watchdog).
  std::chrono::milliseconds hang_limit{60'000};
  /// After a failure, how long run() waits for the lanes to end before it throws all the same.
  std::chrono::milliseconds stop_limit{2'000};
  std::uint64_t first_step = 0;  ///< of training that this executor runs; nothing older exists
  /// Told what failed as soon as it is known, by any thread; where the program itself aborted communication,
  /// once all lanes have ended or stop_limit has passed. Must not throw.
  std::function<void(const Failure&)> on_failure = {};
  /// Told, by the thread that waits in run() or await_step(), of what nothing here can end: an action that
  /// has not returned within stop_limit, or a device that hangs. Both would hold up the destructor for ever,
  /// so who has to report and go on ends the process here. Must not throw.
  std::function<void(const Failure&)> on_stuck = {};
};

/// A rank that runs in this process: one of the schedule, or one of several that are such a rank together,
/// each with a slice of its stages (tensor parallelism). These run the same actions in step. Its communicator
/// says who it is for people: the rank of a larger world, where there are slices.
struct LocalRank {
  schedule::Rank rank;              ///< of the schedule
  StageProgram* program = nullptr;  ///< borrowed
  /// Of all ranks of the schedule, those with the same slice.
  std::unique_ptr<comm::Communicator> communicator = {};
  std::unique_ptr<comm::Communicator> slices = {};    ///< of this rank's; null: it is whole
  std::unique_ptr<comm::Communicator> everyone = {};  ///< all slices of all ranks; null: they are whole
};

/// All ranks of a schedule, in the order of their programs, for a world of this process alone. Each is
/// `num_slices` programs that follow each other. With a link they communicate as over it
/// (EmulatedCommunicator).
std::vector<LocalRank> local_ranks(const std::vector<StageProgram*>& programs, std::size_t num_slices = 1,
                                   const std::optional<plan::Link>& emulated_link = std::nullopt);

/// One of them, of a world that may have more processes: by a communicator of all slices of all ranks, of
/// which all create their groups at the same time where the engine needs that.
LocalRank rank_of_world(StageProgram& program, std::unique_ptr<comm::Communicator> world,
                        std::size_t num_slices);

/// Whether the times of what a device does are recorded, by events around each action.
enum class DeviceTimes : std::uint8_t { Skipped, Recorded };

/// When the actions of a cycle ran.
struct MeasuredCycle {
  std::uint64_t first_step = 0;
  /// Of every rank of the schedule, in seconds from the start of the cycle's first action, on the clock of
  /// the first rank of this process. As in a replay, a receive or collective begins when the last of those it
  /// needs was there, as far as that is known. What was not recorded has no length.
  std::vector<schedule::RankTimes> times;
  std::vector<double> clock_offset_seconds;  ///< of each rank's clock to that one, already taken off
};

/// Adds what other processes recorded to a cycle whose times are still in seconds of this process's clock.
using CompleteCycle = base::FunctionRef<void(MeasuredCycle&)>;

/// Runs the ranks of this process, all of a schedule's or some of them.
///
/// Each non-empty lane of each rank is a thread that runs its actions in order, for as long as the executor
/// lives. Lanes of a rank wait for each other's values; ranks meet in messages and collectives. A lane goes
/// on once a send is started, and all its sends are complete by the end of the step; receives and collectives
/// block their lane. Where a program has queues of a device (StageProgram::queue), a lane goes on once its
/// work is issued, and run() returns when all of it is; await_step() waits for what comes of it.
///
/// An action that throws or hangs ends the run on all ranks, and run() throws an ExecutionError that names
/// it; so does abort_all() of a communicator, whose rank and reason the error then gives. A thread cannot be
/// ended from outside: an action that never returns is asked to stop (ActionRun::stop) and given stop_limit,
/// then run() tells on_stuck and throws without it; but the destructor waits until it has returned, since it
/// uses the program.
class Executor {
 public:
  /// Borrows the schedule and the programs of the ranks, which are in ascending order, slices too. Whatever
  /// else comes from the world of their communicators is aborted with them when a run fails, such as
  /// communicators that the programs have of their own. Throws UserError if the schedule is not right.
  Executor(const schedule::Schedule& schedule, std::vector<LocalRank> ranks, ExecutorOptions options = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs the next `num_steps` steps; step t does step t mod schedule.num_steps() of the schedule. Not to be
  /// called again after it has thrown.
  void run(std::uint64_t num_steps, DeviceTimes device_times = DeviceTimes::Skipped);
  /// Waits until a step that was run, the last or the one before it, has been done on all ranks of this
  /// process; where programs have no device, run() has done so. Throws ExecutionError that names the action
  /// if a device hangs, and what went wrong on it as it is.
  void await_step(std::uint64_t step);

  /// Where the lanes are, in words, for people. By any thread.
  std::string where() const;

  std::uint64_t next_step() const { return next_step_; }
  const schedule::Dataflow& dataflow() const { return dataflow_; }
  /// The last whole cycle of the last run that begins with the schedule's first step. In a run that holds no
  /// such cycle, its first steps, at most as many as a cycle has; what did not run has no length. Waits for
  /// the last step.
  MeasuredCycle measured(CompleteCycle complete = [](MeasuredCycle&) {});

 private:
  StepRange range_of(std::uint64_t num_steps) const;
  /// All lanes, or none: without a thread for each the run has failed.
  void start_threads();
  /// Runs ranges of steps, one after another, until the executor goes.
  void serve_lane(RankExecutor& rank, schedule::Lane lane);
  /// Whether there is one more range than were run.
  bool await_range(std::uint64_t num_run);
  void run_lane(RankExecutor& rank, schedule::Lane lane);
  void watch();
  void fail(const Failure& failure);
  /// A lane was ended by an abort. That is the run's failure only if no lane says what happened.
  void note_abort(const Failure& failure);
  void stop_lanes(const Failure& failure);

  const schedule::Schedule& schedule_;
  ExecutorOptions options_;
  schedule::Dataflow dataflow_;
  std::vector<std::unique_ptr<comm::Communicator>> communicators_;
  std::vector<std::unique_ptr<RankExecutor>> ranks_;
  std::vector<std::pair<RankExecutor*, schedule::Lane>> lanes_;  ///< that have work
  std::uint64_t next_step_;
  std::uint64_t timed_begin_ = 0;                  ///< first step of the cycle that was measured
  std::chrono::duration<double> longest_wait_{0};  ///< in await_step()

  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable range_given_;  ///< or the executor goes
  std::condition_variable changed_;      ///< something that watch() looks at
  std::uint64_t num_ranges_ = 0;         ///< that lanes were given
  std::size_t num_running_ = 0;          ///< lanes that have not ended the last
  bool is_going_ = false;
  std::optional<Failure> failure_;
  std::optional<Failure> aborted_;
  std::vector<std::thread> threads_;
};

}  // namespace plenum::pipeline

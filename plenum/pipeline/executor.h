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
#include <vector>

#include "plenum/comm/communicator.h"
#include "plenum/pipeline/failure.h"
#include "plenum/pipeline/rank_executor.h"
#include "plenum/pipeline/stage_program.h"
#include "plenum/schedule/simulate/replay.h"

namespace plenum::pipeline {

struct ExecutorOptions {
  /// Whether the schedule must pass check() before it runs. Without, a damaged one hangs or computes wrong.
  enum class Checked : std::uint8_t { Yes, No } checked = Checked::Yes;
  /// How long an action may take, or all lanes wait for each other, before the run is given up.
  std::chrono::milliseconds hang_limit{60'000};
  /// After a failure, how long run() waits for the lanes to end before it throws all the same.
  std::chrono::milliseconds stop_limit{2'000};
  std::uint64_t first_step = 0;  ///< of training that this executor runs; nothing older exists
  /// Told what failed as soon as it is known, by any thread; where the program itself aborted communication,
  /// once all lanes have ended or stop_limit has passed. Must not throw.
  std::function<void(const Failure&)> on_failure = {};
};

/// When the actions of a cycle ran.
struct MeasuredCycle {
  std::uint64_t first_step = 0;
  /// In seconds from the start of the cycle's first action, on the clock of rank 0. As in a replay, a receive
  /// or collective begins when the last of those it needs was there.
  std::vector<schedule::RankTimes> times;
  std::vector<double> clock_offset_seconds;  ///< of each rank's clock to that of rank 0, already taken off
};

/// Runs a schedule over ranks that are threads of this process.
///
/// Each non-empty lane of each rank is a thread that runs its actions in order. Lanes of a rank wait for each
/// other's values; ranks meet in messages and collectives. A lane goes on once a send is started, and all its
/// sends are complete by the end of the step; receives and collectives block their lane.
///
/// An action that throws or hangs ends the run on all ranks, and run() throws an ExecutionError that names
/// it; so does abort_all() of a communicator, whose rank and reason the error then gives. A thread cannot be
/// ended from outside: an action that never returns is asked to stop (ActionRun::stop) and given stop_limit,
/// then run() throws without it; but the destructor waits until it has returned, since it uses the program.
/// Who must report a program that never polls does so in on_failure and ends the process.
class Executor {
 public:
  /// Borrows the schedule and the programs, one for each rank. Throws UserError if the schedule is not right.
  Executor(const schedule::Schedule& schedule, std::vector<StageProgram*> programs,
           ExecutorOptions options = {});
  /// With communicators of all ranks that come from outside, one for each rank in order: whatever else comes
  /// from their world is aborted with them when a run fails, such as communicators that the programs have of
  /// their own.
  Executor(const schedule::Schedule& schedule, std::vector<StageProgram*> programs,
           std::vector<std::unique_ptr<comm::Communicator>> communicators, ExecutorOptions options = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs the next `num_steps` steps; step t does step t mod schedule.num_steps() of the schedule. Not to be
  /// called again after it has thrown.
  void run(std::uint64_t num_steps);

  std::uint64_t next_step() const { return next_step_; }
  const schedule::Dataflow& dataflow() const { return dataflow_; }
  /// The last whole cycle of the last run that begins with the schedule's first step. In a run that holds no
  /// such cycle, its first steps, at most as many as a cycle has; what did not run has no length.
  const MeasuredCycle& measured() const { return measured_; }

 private:
  StepRange range_of(std::uint64_t num_steps) const;
  /// All lanes, or none: without a thread for each the run has failed.
  void start_lanes();
  bool await_start();
  void run_lane(RankExecutor& rank, schedule::Lane lane);
  void watch();
  void fail(const Failure& failure);
  /// A lane was ended by an abort. That is the run's failure only if no lane says what happened.
  void note_abort(const Failure& failure);
  void stop_lanes(const Failure& failure);
  void join_lanes();

  const schedule::Schedule& schedule_;
  ExecutorOptions options_;
  schedule::Dataflow dataflow_;
  std::vector<std::unique_ptr<comm::Communicator>> communicators_;
  std::vector<std::unique_ptr<RankExecutor>> ranks_;
  std::uint64_t next_step_;
  MeasuredCycle measured_;

  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t num_running_ = 0;   ///< lanes
  bool may_lanes_begin_ = false;  ///< all have a thread
  std::optional<Failure> failure_;
  std::optional<Failure> aborted_;
  std::vector<std::thread> threads_;
};

}  // namespace plenum::pipeline

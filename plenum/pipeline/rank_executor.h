#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "plenum/pipeline/failure.h"
#include "plenum/pipeline/lane_communicators.h"
#include "plenum/pipeline/lane_progress.h"
#include "plenum/pipeline/lane_queue.h"
#include "plenum/pipeline/stage_program.h"
#include "plenum/pipeline/value_board.h"
#include "plenum/schedule/simulate/replay.h"

namespace plenum::pipeline {

using Clock = std::chrono::steady_clock;

/// Which steps to run.
struct StepRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t timed_begin = 0;  ///< of the cycle whose times are recorded
  bool has_device_times = false;  ///< also of actions that a device does
};

/// Runs the actions of one rank: every non-empty lane on a thread of its own, in order, each action as soon
/// as its inputs exist. A lane goes on once a send is started; by the end of the step all its sends are
/// complete. A lane that has a queue of a device goes on once its work is issued, and its queue waits for
/// what others do for its inputs. Knows nothing of where the other ranks are.
class RankExecutor {
 public:
  /// Borrows all of it but slices and everyone. Step `first_step` of training is the first that ever runs
  /// here.
  RankExecutor(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow, schedule::Rank rank,
               StageProgram& program, RankCommunicators communicators, std::uint64_t first_step);

  schedule::Rank rank() const { return rank_; }
  /// Who it is for people: LocalRank.
  comm::Rank world_rank() const { return world_rank_; }
  bool has_work(schedule::Lane lane) const { return !program_of(lane).actions().empty(); }

  /// Makes ready for steps that follow those that ran. To be called while no lane runs.
  void prepare(const StepRange& range);
  /// Runs a lane to the end of the range, or until close() or a failure. Throws ExecutionError if an action
  /// throws; Failure::aborted_by tells what comes from another's abort_all().
  void run_lane(schedule::Lane lane, std::stop_token stop);
  /// Makes all lanes return from waiting for inputs.
  void close() { board_.close(); }

  /// Lets the caller wait until the device has done one of the last two steps that ran. If it does not get on
  /// for `limit`, says where it is.
  std::optional<Failure> await_step(std::uint64_t step, std::chrono::milliseconds limit);

  /// What went wrong on the device, if something did: it may be that no lane looks, since all wait for
  /// others.
  std::optional<Failure> device_failure() const;

  /// Whether the device has done, or given up, all that was issued.
  bool is_device_idle() const;

  const LaneProgress& progress(schedule::Lane lane) const { return progress_[index_of(lane)]; }
  /// The action a lane is at, or was at last.
  const schedule::Action& action_at(schedule::Lane lane) const;
  /// In words, what a lane waits for.
  std::string awaited_by(schedule::Lane lane) const;
  /// The failure of the action that a lane is at.
  Failure failure_at(schedule::Lane lane, std::string message, std::exception_ptr cause = {}) const;

  /// When the actions of the recorded cycle began (their inputs were there) and ended, in seconds of the
  /// clock. Those that were skipped or not recorded have no length. Waits for the device. While no lane runs.
  schedule::RankTimes times() const;

 private:
  /// A message that was started and whose buffer is still in use.
  struct PendingSend {
    ActionRun run;
    std::size_t position;
    comm::Completion completion;
  };
  /// What the thread of a lane has to itself. When it goes, sends that are still pending are abandoned.
  struct LaneRun {
    schedule::Lane lane;
    LaneProgress& progress;
    LaneQueue* queue;  ///< null: work is done when it returns
    std::stop_token stop;
    std::list<PendingSend> sends = {};
    std::vector<schedule::ValueRef> values = {};         ///< scratch
    std::vector<const tensor::QueueEvent*> events = {};  ///< scratch
  };
  /// Where an action stands.
  struct Place {
    std::size_t index;     ///< in its step
    std::size_t position;  ///< in LaneProgram::actions()
  };

  static std::size_t index_of(schedule::Lane lane) { return static_cast<std::size_t>(lane); }
  const schedule::LaneProgram& program_of(schedule::Lane lane) const;
  Failure failure_of(schedule::Lane lane, std::uint64_t step, const schedule::Action& action,
                     std::string message) const;
  bool is_timed(const LaneRun& lane, std::uint64_t step) const;
  /// At the other end of a message, for people.
  comm::Rank peer_of(const schedule::Action& message) const;

  /// These are false if the run was closed meanwhile.
  bool run_step(LaneRun& lane, std::uint64_t step);
  bool run_action(LaneRun& lane, const ActionRun& run, Place place);
  /// Lets the lane, or its queue, wait until no other lane's queue is two steps behind.
  bool await_older_steps(LaneRun& lane, std::uint64_t step);
  /// Lets the lane, or its queue, wait for what other queues have still to do.
  bool await_events(LaneRun& lane);

  void perform(LaneRun& lane, const ActionRun& run, std::size_t position);
  /// Does all of an action that needs no other rank, or begins to communicate; what it gives is to be waited
  /// for, after which StageProgram::communicated() ends it.
  std::optional<comm::Completion> start(const ActionRun& run);
  comm::Completion start_message(const ActionRun& run);
  comm::Completion start_collective(const ActionRun& run);
  comm::Completion start_partitioned(const ActionRun& run, const PartitionedElements& buffer);
  /// What is gathered once a gather is done.
  void gather_besides(const ActionRun& run);
  /// Ends the sends that are complete.
  void poll_sends(LaneRun& lane);
  /// Ends all sends.
  void await_sends(LaneRun& lane);
  /// Overwrites the times of what the device did.
  void read_device_times(schedule::RankTimes& times) const;

  const schedule::Schedule& schedule_;
  const schedule::Dataflow& dataflow_;
  schedule::Rank rank_;
  comm::Rank world_rank_;
  StageProgram& program_;
  std::uint64_t first_step_;
  std::array<LaneProgress, schedule::kNumLanes> progress_;
  LaneCommunicators communicators_;
  ValueBoard board_;
  std::array<std::unique_ptr<LaneQueue>, schedule::kNumLanes> queues_;
  bool has_queues_ = false;
  StepRange range_;
  schedule::RankTimes times_;
  std::array<std::vector<double>, schedule::kNumLanes> longest_seconds_;  ///< that each action took
};

}  // namespace plenum::pipeline

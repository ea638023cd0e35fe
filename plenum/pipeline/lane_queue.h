#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plenum/schedule/core/schedule.h"
#include "plenum/schedule/simulate/replay.h"
#include "plenum/tensor/work_queue.h"

namespace plenum::pipeline {

/// What a lane issues into the queue of a device: an event stands behind every action, for other lanes and
/// for the host; around those that are timed stand two more.
class LaneQueue {
 public:
  /// Borrows both. The events of a step are kept while the lane runs the `num_kept_steps` - 1 that follow.
  LaneQueue(const tensor::WorkQueue& queue, const schedule::LaneProgram& program, std::size_t num_kept_steps);

  const tensor::WorkQueue& queue() const { return queue_; }

  /// From here on by the lane's thread.
  /// Forgets the times of the last run.
  void prepare_times();
  void begin_timed(std::size_t position);
  void end_timed(std::size_t position);
  /// Records the event behind action `index` of a step.
  const tensor::QueueEvent& end_action(std::uint64_t step, std::size_t index);

  /// By any thread: behind action `index` of a step that is kept.
  const tensor::QueueEvent& event_behind(std::uint64_t step, std::size_t index) const {
    return *events_[step % num_kept_steps_ * most_actions_ + index];
  }
  /// Behind all of a step that is kept; null if the lane does nothing in it.
  const tensor::QueueEvent* event_behind_step(std::uint64_t step) const;

  /// Whether nothing that was issued is still to be done.
  bool is_idle() const;

  /// Whether an action was timed since prepare_times().
  bool is_timed(std::size_t position) const { return !timed_.empty() && timed_[position].is_recorded; }
  /// When an action that was timed, and is done, began and ended, in seconds on the clock on which `anchor`,
  /// a timed event that came later, was recorded at `anchor_seconds`.
  schedule::ActionTime time_of(std::size_t position, const tensor::QueueEvent& anchor,
                               double anchor_seconds) const;

 private:
  struct TimedAction {
    std::unique_ptr<tensor::QueueEvent> begin;
    std::unique_ptr<tensor::QueueEvent> end;
    bool is_recorded = false;
  };

  const tensor::WorkQueue& queue_;
  const schedule::LaneProgram& program_;
  std::size_t num_kept_steps_;
  std::size_t most_actions_ = 0;  ///< of one step
  std::vector<std::unique_ptr<tensor::QueueEvent>> events_;
  std::vector<TimedAction> timed_;  ///< by position in LaneProgram::actions()
};

}  // namespace plenum::pipeline

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "plenum/pipeline/bert_program.h"

namespace plenum::train {

/// How a run is to go, known before its first step. Steps count from 1.
struct RunCadence {
  std::uint64_t num_steps = 0;
  std::uint64_t evaluate_every = 0;          ///< 0: at the end only
  std::uint64_t checkpoint_every = 0;        ///< 0: at the end only
  std::optional<std::uint64_t> traced_step;  ///< whose measured actions are drawn
  /// Steps whose actions are measured to compare them with a prediction: [first, end).
  std::uint64_t first_measured_step = 0;
  std::uint64_t end_measured_step = 0;
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  double time_limit_seconds = kNever;  ///< of this process
  double checkpoint_seconds = kNever;  ///< from one checkpoint to the next, beside checkpoint_every
  double evaluation_seconds = kNever;  ///< likewise
  std::size_t lag = 0;                 ///< how many steps may run on uncounted while training goes on
  /// Of a cycle of steps, by how many of it are done: whether no work waits that a checkpoint does not hold
  /// (schedule::Refreshes::is_drained). Some is true.
  std::vector<bool> is_drained = {true};
};

/// How long things took in this process.
struct RunTimes {
  double elapsed_seconds = 0;           ///< since it began
  double step_seconds = 0;              ///< of the last step
  double pause_seconds = 0;             ///< of the longest pause
  double since_checkpoint_seconds = 0;  ///< or since it began
  double since_evaluation_seconds = 0;  ///< or since it began
  double checkpoint_seconds = 0;        ///< the longest that writing one took
  double evaluation_seconds = 0;        ///< likewise
};

/// What ranks told each other with the steps counted since the last one was begun.
struct Agreed {
  bool is_stop_asked = false;  ///< by some rank, with any of them
  bool is_skipped = false;     ///< the newest of them
  pipeline::DueByClock due;    ///< by the clock of some rank, with any of them

  void add(const pipeline::StepOutcome& outcome) {
    is_stop_asked |= outcome.is_stop_asked;
    is_skipped = outcome.is_skipped;
    due |= outcome.due;
  }
  bool ends_run() const { return is_stop_asked || due.is_time_up; }
  bool asks_for_pause() const { return is_stop_asked || due.is_any(); }
};

/// What is done between a step and the next, in this order.
struct Pause {
  bool is_traced = false;
  bool is_measured = false;  ///< for the overlay of a prediction
  bool is_evaluated = false;
  bool is_saved = false;
  bool is_end = false;  ///< no step follows; whoever ends a run writes a last checkpoint

  bool is_needed() const { return is_traced || is_measured || is_evaluated || is_saved || is_end; }
  friend bool operator==(const Pause&, const Pause&) = default;
};

/// Decides when a run is evaluated and saved, and when it ends. Nothing is decided alone: decisions follow
/// from the number of a step and from what all ranks agreed on, so all come to the same one. What a rank
/// knows for itself, as its clock, goes into the next step's agreement and comes back in its outcome.
///
/// Where work of several steps is under way nothing is evaluated or saved, nor does the run end before its
/// last step: all that is due waits until the work is done.
class RunPolicy {
 public:
  explicit RunPolicy(RunCadence cadence) : cadence_(std::move(cadence)) {}

  /// Before a step: what this rank's clock says is due after it, to be agreed on. What takes long is due less
  /// often than asked for, so that it takes a twentieth of the time at most. Time is up if a further
  /// step, begun when all have agreed, and a pause might not end within the limit; where the run cannot end
  /// after every step, if those up to where it next can might not.
  pipeline::DueByClock due_by_clock(std::uint64_t step, const RunTimes& times) const;

  /// Whether the run may be evaluated, saved and ended after a step.
  bool may_pause_after(std::uint64_t step) const;
  /// What a step's number alone makes due after it.
  Pause due_after(std::uint64_t step) const;

  /// With a step begun that has this due after it: how many steps may stay uncounted, the newest ones. None
  /// before a pause, be it due by number or agreed on.
  std::size_t most_uncounted(const Pause& due, const Agreed& agreed) const;

  /// What is done after a step, once it and all before it are counted; `agreed` since the last step that
  /// might be paused after. A run that is asked to stop, or
  /// out of time, writes its last checkpoint and does nothing else. While steps are skipped no checkpoint
  /// takes the place of a good one.
  Pause after(std::uint64_t step, const Agreed& agreed) const;

 private:
  bool is_due(std::uint64_t step, std::uint64_t every) const;
  /// The next step from this one on, or the last before it, after which nothing waits.
  std::uint64_t next_drained(std::uint64_t step) const;
  std::uint64_t drained_before(std::uint64_t step) const;

  RunCadence cadence_;
};

}  // namespace plenum::train

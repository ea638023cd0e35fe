#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plenum/base/function_ref.h"
#include "plenum/train/checkpoint.h"
#include "plenum/train/evaluation.h"
#include "plenum/train/hang_watch.h"
#include "plenum/train/metrics.h"
#include "plenum/train/run.h"
#include "plenum/train/training_observer.h"

namespace plenum::train {

/// Writes what a run leaves in its directory while it trains: metrics and checkpoints, with the tuning that
/// they were computed with. What cannot be written for a reason that the user can mend, as a full disk, ends
/// the run or is noted, as --on-full-disk says.
///
/// Of several processes the first writes metrics, and all write checkpoints together and know what came of
/// them. Metrics that cannot be written end such a run with a checkpoint of all; so they do a run whose
/// pipeline is filled, at the end of its cycle.
class RunWriter {
 public:
  /// Borrows all. The watch is told of what is written.
  RunWriter(Run& run, TrainingObserver& observer, HangWatch& watch);

  /// Adds to the metrics. Where the run is not to go on without, throws UserError, or of several processes
  /// asks all to stop.
  void add(const StepReport& report);
  /// Of the run's step.
  void add(const Evaluation& evaluation);

  /// Writes a checkpoint of where the run stands. Throws UserError where the run is not to go on without.
  void save();
  /// Writes the last checkpoint, unless it is there. Throws UserError if it could not be written.
  void save_last();
  /// Writes a checkpoint of what was trained before an error, unless that was tried already; notes if it
  /// could not.
  void save_before_error();

  /// Throws UserError if all were asked to stop because metrics could not be written.
  void require_metrics() const;

  std::uint64_t saved_step() const { return saved_step_; }
  /// The newest checkpoint; "none" where there is none.
  const std::string& saved_path() const { return saved_path_; }

 private:
  /// Returns a line that says why it could not be written, if so.
  std::optional<std::string> try_to_save();
  /// Returns its path.
  std::string write_checkpoint();
  void add_to_metrics(base::FunctionRef<void()> add);
  /// Whether the run is to go on without what could not be written.
  bool goes_on_without() const;

  Run& run_;
  TrainingObserver& observer_;
  HangWatch& watch_;
  CheckpointStore checkpoints_;
  std::optional<Metrics> metrics_;  ///< of the first process
  std::uint64_t tried_step_ = 0;    ///< the last of which a checkpoint was to be written
  std::uint64_t saved_step_ = 0;
  std::string saved_path_ = "none";
  bool are_metrics_missing_ = false;  ///< of the newest step or evaluation, which was noted when it began
  std::optional<std::string> fatal_;  ///< for which all were asked to stop
};

}  // namespace plenum::train

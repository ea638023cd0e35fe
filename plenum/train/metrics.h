#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plenum/describe/objective.h"
#include "plenum/io/append_file.h"
#include "plenum/io/tensorboard.h"
#include "plenum/train/evaluation.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/training_observer.h"
#include "plenum/train/training_state.h"

namespace plenum::train {

/// A file of JSON objects, one in a line, each with the `step` it belongs to. Steps do not fall.
class StepLines {
 public:
  /// Opens or makes the file and drops the lines of steps above `last_step`, and a line that was cut: what a
  /// process wrote behind the checkpoint that is taken up, this one writes again. Reads only what it drops.
  StepLines(std::string path, std::uint64_t last_step);

  /// Appends an object and hands it to the kernel. After a failure the file is as it was before.
  void append(const std::string& object);
  void sync() const;
  /// The line before those that are appended here, without its end; empty where there is none.
  const std::string& last_kept() const { return last_kept_; }

 private:
  std::string path_;
  std::string last_kept_;
  std::uint64_t size_ = 0;
  std::optional<io::AppendFile> file_;  ///< none after a failure, until it can be opened again
};

/// By which a step becomes a share of a run.
struct RunExtent {
  std::uint64_t num_steps = 0;
  std::uint64_t steps_per_epoch = 1;
};

/// Writes what steps and evaluations gave into the run directory: metrics.jsonl,
/// evaluations.jsonl and TensorBoard scalars. Each has its epoch and the wall time of the run, which goes on
/// from the last step that is kept: what passes while no process trains does not count.
class Metrics {
 public:
  /// Of a run that stands at a state: steps and evaluations that it does not count are dropped, and made
  /// again. The objectives, which are the model's, give metrics their names.
  Metrics(const RunPaths& paths, const TrainingState& state, const RunExtent& extent,
          std::vector<describe::Objective> objectives);

  /// Throw UserError when the disk is full.
  void add(const StepReport& report);
  void add(std::uint64_t step, const Evaluation& evaluation);
  /// Returns when all of it is on the disk.
  void sync() const;

 private:
  /// Values of TensorBoard by their tags.
  using Values = std::vector<std::pair<std::string, double>>;
  void add_scalars(std::uint64_t step, const Values& values);
  double epoch_of(std::uint64_t step) const {
    return static_cast<double>(step) / static_cast<double>(extent_.steps_per_epoch);
  }
  double wall_seconds() const;

  const RunExtent extent_;
  std::vector<describe::Objective> objectives_;
  StepLines steps_;
  StepLines evaluations_;
  io::EventFile events_;
  const double earlier_seconds_;  ///< that earlier processes trained
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace plenum::train

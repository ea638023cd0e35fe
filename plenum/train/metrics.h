#pragma once

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

 private:
  std::string path_;
  std::uint64_t size_;
  std::optional<io::AppendFile> file_;  ///< none after a failure, until it can be opened again
};

/// Writes what steps and evaluations gave into the run directory: metrics.jsonl,
/// evaluations.jsonl and TensorBoard scalars.
class Metrics {
 public:
  /// The objectives, which are the model's, give metrics their names.
  Metrics(const RunPaths& paths, std::uint64_t last_step, std::vector<describe::Objective> objectives);

  /// Throw UserError when the disk is full.
  void add(const StepReport& report);
  void add(std::uint64_t step, const Evaluation& evaluation);
  /// Returns when all of it is on the disk.
  void sync() const;

 private:
  /// Values of TensorBoard by their tags.
  using Values = std::vector<std::pair<std::string, double>>;
  void add_scalars(std::uint64_t step, const Values& values);

  std::vector<describe::Objective> objectives_;
  StepLines steps_;
  StepLines evaluations_;
  io::EventFile events_;
};

}  // namespace plenum::train

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plenum::train {

/// A step as metrics.jsonl has it. What a line lacks is 0.
struct RecordedStep {
  std::uint64_t step = 0;
  std::uint64_t num_steps = 0;  ///< of the run
  std::optional<double> loss;   ///< nothing where it was not finite or nothing had a label
  bool is_skipped = false;
  double learning_rate = 0;
  double tokens_per_second = 0;
  double seconds = 0;
  double epoch = 0;
  double wall_seconds = 0;
};

/// An evaluation as evaluations.jsonl has it.
struct RecordedEvaluation {
  std::uint64_t step = 0;
  double loss = 0;
  std::optional<double> accuracy;  ///< of masked tokens
};

/// What the files of a run say about where it stands.
struct RunProgress {
  std::vector<RecordedStep> steps;   ///< samples from the first to the last, in order
  std::vector<RecordedStep> recent;  ///< the last ones, in order
  std::optional<RecordedEvaluation> last_evaluation;
  std::optional<RecordedEvaluation> best_evaluation;
  std::string checkpoint;     ///< the newest; empty where there is none
  bool is_locked = false;     ///< by a process of this machine that trains it
  double silent_seconds = 0;  ///< since a step was written

  bool is_finished() const;
  /// Means over the recent steps; 0 where there are none.
  double tokens_per_second() const;
  double seconds_left() const;
};

/// Reads where the run in a directory stands, with about `num_samples` steps of its curve; it takes no lock
/// and reads a part of long files only, so it may be called while a run trains. Throws UserError if the
/// directory is none of a run.
RunProgress read_run_progress(const std::string& directory, std::size_t num_samples);

}  // namespace plenum::train

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plenum/plan/step_breakdown.h"
#include "plenum/train/study_grid.h"

namespace plenum::train {

/// What was said of a configuration before it ran.
struct StudyPrediction {
  std::uint64_t num_steps = 0;         ///< that it is to run
  std::vector<double> step_seconds;    ///< of each
  plan::StepBreakdown breakdown = {};  ///< of the step that is drawn, the mean over ranks
  double skew_seconds = 0;             ///< of that step: backward_skew()
  std::size_t planned_bytes = 0;       ///< of the first process
  std::size_t peak_bytes = 0;          ///< with program and libraries
};

/// What one run of it showed.
struct StudyMeasurement {
  std::vector<double> step_seconds;
  std::vector<double> step_tokens;        ///< padding left out
  std::size_t planned_bytes = 0;          ///< of the first process
  std::size_t used_bytes = 0;             ///< of it, at most at a time
  std::optional<double> exposed_seconds;  ///< of the drawn step: exposed_communication(); of several ranks
  std::optional<double> skew_seconds;     ///< likewise: backward_skew()
};

/// A configuration of a study, predicted and measured.
struct StudyResult {
  /// Steps of a process that come before: they take memory and warm caches.
  static constexpr std::size_t kNumBefore = 4;

  StudyConfiguration configuration;
  std::string name;  ///< unique within a study
  double parameters = 0;
  double width = 0;
  StudyPrediction prediction = {};
  std::vector<StudyMeasurement> runs = {};
  std::string failure = {};  ///< of the run that went wrong, if one did: then none counts

  bool is_measured() const { return failure.empty() && !runs.empty(); }
  /// Means over the steps that count. What is measured is the mean over runs, too.
  double predicted_step() const;
  double measured_step() const;
  /// predicted / measured - 1
  double step_error() const { return predicted_step() / measured_step() - 1; }
  /// Of the runs' mean steps: (most - least) / mean; 0 of one run.
  double spread() const;
  /// Of the steps that count, each the mean over runs.
  std::vector<double> measured_steps() const;
  std::vector<double> predicted_steps() const;
  /// Whether steps are different enough, by what was predicted, for R² to say anything.
  bool has_steps_of_different_sizes() const;
  double step_r_squared() const;
  /// The same if the mean of all steps had been predicted rightly: how well differences between steps are.
  double scaled_step_r_squared() const;
  /// The most that this can be: attainable_r_squared() of the steps that count, all runs with one mean.
  std::optional<double> attainable_step_r_squared() const;
  double tokens_per_step() const;
  /// The most over runs.
  std::size_t used_bytes() const;
  double memory_error() const;
  /// Means over runs, where all have it.
  std::optional<double> exposed_seconds() const;
  std::optional<double> skew_seconds() const;
};

/// An action of a step on a lane that computes, or on one that communicates.
struct LaneAction {
  std::size_t rank = 0;
  bool is_computed = false;  ///< in the compute lane
  bool is_backward = false;  ///< a pass backward, or a part of one
  double start = 0;
  double end = 0;
};
/// In which messages or collectives run while their rank computes nothing: seconds, the mean over ranks.
double exposed_communication(const std::vector<LaneAction>& step);
/// How long after the first of the ranks the last one ends its passes backward, and so can enter the last
/// sum over ranks.
double backward_skew(const std::vector<LaneAction>& step);

}  // namespace plenum::train

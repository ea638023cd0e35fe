#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>

#include "plenum/batch/label_counts.h"

namespace plenum::pipeline {

/// What a clock says is to be done after a step: a rank's own before the step, in its outcome that of any
/// rank.
struct DueByClock {
  bool is_time_up = false;  ///< of the run
  bool is_checkpoint_due = false;
  bool is_evaluation_due = false;

  bool is_any() const { return is_time_up || is_checkpoint_due || is_evaluation_due; }
  DueByClock& operator|=(const DueByClock& other);
  friend bool operator==(const DueByClock&, const DueByClock&) = default;
};

/// What a step gave. The same on every rank.
struct StepOutcome {
  /// Of each objective of the model: mean over its losses in the global batch (describe::num_losses); 0 where
  /// it has none.
  std::array<double, batch::kMostObjectives> losses = {};
  /// How many losses each of them is the mean of.
  std::array<std::int64_t, batch::kMostObjectives> num_losses = {};
  double gradient_norm = 0;       ///< before clipping
  bool is_skipped = false;        ///< loss or gradient was not finite: nothing was changed
  bool is_stop_asked = false;     ///< some rank asked to stop
  DueByClock due;                 ///< as the clock of some rank says
  std::uint64_t num_updates = 0;  ///< steps of the run that were not skipped, with this one

  /// Their sum.
  double loss() const { return std::accumulate(losses.begin(), losses.end(), 0.0); }
  /// For whoever records them: nothing where the batch had no label for an objective, or for any.
  std::optional<double> known_loss(std::size_t objective) const {
    return num_losses[objective] > 0 ? std::optional(losses[objective]) : std::nullopt;
  }
  std::optional<double> known_loss() const {
    return std::ranges::any_of(num_losses, [](std::int64_t count) { return count > 0; })
               ? std::optional(loss())
               : std::nullopt;
  }
};

}  // namespace plenum::pipeline

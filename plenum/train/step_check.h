#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "plenum/schedule/core/action.h"
#include "plenum/train/measured_step.h"
#include "plenum/train/step_prediction.h"
#include "plenum/train/step_record.h"

namespace plenum::train {

/// Compares steps as they were measured with what was predicted for them before the run.
class StepCheck {
 public:
  /// Steps of a process that come before: they take memory, warm caches, and on a GPU choose algorithms.
  static constexpr std::uint64_t kNumBefore = 4;
  static constexpr std::uint64_t kNumCompared = 4;

  /// Borrows the schedule.
  StepCheck(const schedule::Schedule& schedule, StepPrediction& prediction)
      : schedule_(schedule), prediction_(prediction) {}

  /// A step by its number from 0, and how long all of it took.
  void add(std::uint64_t step, const MeasuredStep& measured, double seconds);
  std::size_t num_compared() const { return num_compared_; }

  /// The step that was added last, by its number from 1.
  StepRecord record(std::uint64_t step, const MeasuredStep& measured) const;

  /// If they took much longer or shorter than predicted: by how much, and which action's time differs most.
  std::optional<std::string> surprise() const;

 private:
  struct Seconds {
    double predicted = 0;
    double measured = 0;
  };

  const schedule::Schedule& schedule_;
  StepPrediction& prediction_;
  schedule::Simulation predicted_;  ///< of the step that was added last
  Seconds of_steps_;
  std::array<Seconds, schedule::kNumActionTypes> of_actions_ = {};  ///< sums over ranks
  std::size_t num_compared_ = 0;
};

}  // namespace plenum::train

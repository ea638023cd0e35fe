#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/schedule/simulate/measured_costs.h"
#include "plenum/trace/timeline.h"
#include "plenum/train/measured_step.h"

namespace plenum::train {

/// Lays measured steps over what the schedule predicts for them: it is simulated with the durations that its
/// actions had in a few earlier steps of the same run, when all ranks were at work.
class StepOverlay {
 public:
  /// Steps that durations are taken from, at most: four, or all kinds of steps that a schedule has.
  static std::uint64_t num_calibrating(const schedule::Schedule& schedule) {
    return std::max<std::uint64_t>(4, schedule.num_steps());
  }
  /// Steps from the drawn one on that are compared.
  static constexpr std::uint64_t kNumCompared = 5;
  /// The first step of a process takes memory and warms caches: no other is like it.
  static constexpr std::uint64_t kFirstUsable = 2;

  /// Borrows the schedule.
  StepOverlay(const schedule::Schedule& schedule, std::uint64_t drawn_step);

  /// Steps in order, those before the drawn one first.
  void add(std::uint64_t step, const MeasuredStep& measured);

  /// The drawn step and its prediction: of the same spans. Nothing before it was added.
  struct Drawn {
    trace::Timeline predicted;
    trace::Timeline measured;
  };
  const std::optional<Drawn>& drawn() const { return drawn_; }

  std::size_t num_compared() const { return errors_.size(); }
  /// Mean of |measured - predicted| / measured over the compared steps.
  double mean_error() const;

 private:
  /// Of such a step, if its actions took these times.
  trace::Timeline timeline(const MeasuredStep& step, const std::vector<schedule::RankTimes>& times,
                           std::string title) const;

  const schedule::Schedule& schedule_;
  schedule::Dataflow dataflow_;
  std::uint64_t drawn_step_;
  schedule::MeasuredCosts costs_;
  std::optional<Drawn> drawn_;
  std::vector<double> errors_;
};

/// Writes the drawn step as its path says: .svg as a drawing, anything else as JSON with the error of every
/// action.
void write_overlay(const std::string& path, const StepOverlay::Drawn& drawn, const std::string& title);

}  // namespace plenum::train

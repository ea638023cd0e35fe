#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "plenum/schedule/fill/filler.h"
#include "plenum/schedule/simulate/gather_gaps.h"
#include "plenum/schedule/simulate/replay.h"

namespace plenum::schedule {

/// A place in the order of all actions of all steps: what has to wait has a later place, also where times are
/// the same because nothing takes time.
struct Place {
  std::int64_t step = 0;
  std::int64_t order = -1;  ///< SteadyStep::order(); -1: before all actions of the step

  friend auto operator<=>(const Place&, const Place&) = default;
};

inline constexpr Place kBeforeAll = {.step = std::numeric_limits<std::int64_t>::min()};
inline constexpr Place kBehindAll = {.step = std::numeric_limits<std::int64_t>::max()};

/// Idle time of a lane between two actions of a step, in seconds from the step's begin.
struct Gap {
  double begin = 0;
  double end = 0;
  std::size_t position = 0;  ///< of the action that follows it; after the last one, the number of actions
};

/// A step together with what a filler adds to every step, and when everything in it happens once steps follow
/// each other without end: a step is seconds() after the one before it.
class SteadyStep {
 public:
  /// Throws UserError if the schedule has more than one step or a preconditioner already, or does not run.
  SteadyStep(Schedule base, const Filler& filler, const CostModel& costs, IdleTime idle = IdleTime::Gathered);
  SteadyStep(const SteadyStep&) = delete;
  SteadyStep& operator=(const SteadyStep&) = delete;

  /// One step; actions that may be stale have age kUnknownAge.
  const Schedule& schedule() const { return schedule_; }
  const Dataflow& dataflow() const { return dataflow_; }
  double seconds() const { return seconds_; }
  /// The step that a time between steps belongs to: a step begins when the first rank begins to compute.
  std::int64_t step_at(double time) const;
  const LaneTimes& times(Rank rank, Lane lane) const {
    return times_[rank.index()][static_cast<std::size_t>(lane)];
  }
  /// The place of an action among all of the step.
  std::int64_t order(Rank rank, Lane lane, std::size_t position) const {
    return order_[rank.index()][static_cast<std::size_t>(lane)][position];
  }
  /// The gaps of a rank's compute lane, in order; the last one reaches into the next step and may belong to
  /// either.
  std::vector<Gap> gaps(Rank rank) const;
  double bubble_seconds(Rank rank) const;
  /// The time in which a rank's data-parallel lane is idle.
  double data_idle_seconds(Rank rank) const;

  /// When the step makes a value; nothing if it does not.
  std::optional<double> made(Rank rank, std::uint32_t value) const;
  /// The order() of the action that makes it, of a value that the step makes.
  std::int64_t made_order(Rank rank, std::uint32_t value) const { return made_order_[rank.index()][value]; }
  /// When the step's own actions have made it and read it for the last time.
  double released(Rank rank, std::uint32_t value) const { return released_[rank.index()][value]; }

  /// Ages that are not known yet reach before the first step of the replay, where every value exists.
  static constexpr std::uint8_t kUnknownAge = 4;
  /// Times that differ by less, as a part of the step, are one.
  static constexpr double kRounding = 1e-10;

 private:
  void find_values();

  Schedule schedule_;
  Dataflow dataflow_;
  double seconds_ = 0;
  double first_start_ = 0;  ///< of a rank's computing
  std::vector<RankTimes> times_;
  std::vector<std::array<std::vector<std::uint32_t>, kNumLanes>> order_;
  std::vector<std::vector<double>> made_;
  std::vector<std::vector<std::int64_t>> made_order_;
  std::vector<std::vector<double>> released_;
};

}  // namespace plenum::schedule

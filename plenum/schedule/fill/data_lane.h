#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "plenum/schedule/fill/steady_step.h"

namespace plenum::schedule {

/// When a rank's data-parallel lane is busy in a cycle of steps, on a circle.
class DataLane {
 public:
  DataLane(const SteadyStep& step, Rank rank, std::size_t num_steps);

  /// The first time from `time` on at which the lane is free for `seconds`.
  double first_free(double time, double seconds) const;
  void occupy(double time, double seconds);

  /// How many of the step's own actions are done by `time`, counted from the first one of step 0.
  std::int64_t num_done(double time) const;
  std::size_t num_actions() const { return ends_.size(); }

  /// Between which of the step's own actions a time lies.
  struct Surroundings {
    std::int64_t step_before;  ///< of the last one that is done
    std::int64_t step_after;   ///< of the next one
    double next_end;           ///< when that is done
    Place before;              ///< of the last one
    Place after;               ///< of the next one
  };
  Surroundings surroundings(double time) const;

  /// Says what a collective that lies at `time` comes after: so do those that are put behind it there.
  void add_collective(double time, const Place& after);
  /// What the collectives at `time` come after.
  Place after_collectives(double time) const;

 private:
  double step_seconds_;
  double cycle_seconds_;
  std::vector<double> ends_;             ///< of the step's own actions, from the begin of the step
  std::vector<std::int64_t> order_;      ///< of these among all of the step
  std::map<double, double> busy_;        ///< begin to end, within the circle
  std::map<double, Place> collectives_;  ///< by their times, which do not go round
};

/// When a collective runs, the step it belongs to, and what it comes after.
struct CollectiveSlot {
  double start = 0;
  std::int64_t step = 0;
  Place after = {};
};

/// The first slot, not before `earliest` in time, step or place, in which the lanes of all `ranks` are free
/// for `seconds` and can agree on a step: one that their own actions around it allow. `lanes` has one for
/// every rank. Nothing if there is none.
std::optional<CollectiveSlot> first_slot(const SteadyStep& step, const std::vector<DataLane>& lanes,
                                         std::span<const Rank> ranks, const CollectiveSlot& earliest,
                                         double seconds);

}  // namespace plenum::schedule

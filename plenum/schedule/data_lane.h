#pragma once

#include <map>

#include "plenum/schedule/steady_step.h"

namespace plenum::schedule {

/// When a rank's data-parallel lane is busy in a cycle of steps, on a circle.
class DataLane {
 public:
  DataLane(const SteadyStep& step, Rank rank, std::size_t num_steps);

  /// The first time from `time` on at which the lane is free for `seconds`.
  double first_free(double time, double seconds) const;
  void occupy(double time, double seconds);

  /// How many of the step's own actions are done by `time`, counted from the first action of step 0.
  std::int64_t num_done(double time) const;
  std::size_t num_actions() const { return ends_.size(); }

 private:
  double step_seconds_;
  double cycle_seconds_;
  std::vector<double> ends_;       ///< of the step's own actions, from the begin of the step
  std::map<double, double> busy_;  ///< begin to end, within the circle
};

}  // namespace plenum::schedule

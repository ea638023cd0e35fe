#pragma once

#include <vector>

#include "plenum/plan/step_costs.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/schedule/simulate/simulate.h"

namespace plenum::plan {

/// Where the time of a step goes, in seconds. The parts add up to the step.
///
/// What a rank computes is divided by what limits it; what it computes for padding, and what updates weights
/// or serves that (squares, curvature, inverses, preconditioning), are parts of their own. While it computes
/// nothing, it is for what the next computation waits for: going back in time from there, a collective or
/// message that runs is communication; one that cannot begin because another rank has not come to it is
/// waiting where that rank holds the same stages, and a bubble where it holds others.
struct StepBreakdown {
  double arithmetic = 0;  ///< forward and backward
  double memory = 0;      ///< what moves bytes, there and around collectives
  double launch = 0;      ///< starting operations, and the step's overhead
  double communication_latency = 0;
  double communication_bandwidth = 0;
  double waiting = 0;
  double bubbles = 0;
  double padding = 0;
  double optimizer = 0;

  double total() const;
  StepBreakdown& operator+=(const StepBreakdown& other);
  StepBreakdown& operator*=(double factor);
};

/// Of each rank in the steady state, the mean over the cycle. The simulation must be of these costs.
std::vector<StepBreakdown> rank_breakdowns(const schedule::Schedule& schedule, const StepCosts& costs,
                                           const schedule::Simulation& simulation);

/// The mean over ranks.
StepBreakdown step_breakdown(const schedule::Schedule& schedule, const StepCosts& costs,
                             const schedule::Simulation& simulation);

}  // namespace plenum::plan

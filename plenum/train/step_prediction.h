#pragma once

#include <cstdint>
#include <vector>

#include "plenum/plan/cluster.h"
#include "plenum/plan/step_costs.h"
#include "plenum/schedule/simulate/simulate.h"
#include "plenum/train/processes.h"
#include "plenum/train/run_plan.h"

namespace plenum::train {

/// What a run's steps take, as the planner knows it: the very schedule that runs, simulated with what each
/// step works on.
class StepPrediction {
 public:
  /// Borrows the plan.
  StepPrediction(const RunPlan& plan, plan::Cluster cluster);
  StepPrediction(const StepPrediction&) = delete;
  StepPrediction& operator=(const StepPrediction&) = delete;

  /// Of a cycle of steps that all worked on what this one does.
  schedule::Simulation simulate(std::uint64_t step);
  double seconds(std::uint64_t step) { return simulate(step).step_seconds; }
  /// Over some steps at equal distances.
  double mean_seconds();

  /// What large matrix products reach on all ranks together, in FLOP/s.
  double product_rate() const {
    return cluster_.device.peak_flops * static_cast<double>(plan_.mesh().num_ranks());
  }

  /// Costs in the step that was simulated last.
  const plan::StepCosts& costs() const { return costs_; }

 private:
  const RunPlan& plan_;
  plan::Cluster cluster_;
  plan::StepCosts costs_;
};

/// What this machine does with the operations of a run, measured for about so long at sizes of the run's own
/// micro-batches, while all its ranks are busy; with the links between those of its processes, or of this
/// process if there are no others. By all processes of the run at the same time.
plan::Cluster measure_cluster(const RunPlan& plan, const Processes& processes, double seconds);

/// Lets links be no faster than that of --emulate-link.
void slow_down(plan::Cluster& cluster, const plan::Link& emulated_link);

}  // namespace plenum::train

#pragma once

#include <cstddef>
#include <vector>

#include "plenum/describe/model_description.h"
#include "plenum/plan/cluster.h"
#include "plenum/plan/step_costs.h"
#include "plenum/plan/step_schedule.h"
#include "plenum/plan/step_work.h"
#include "plenum/plan/strategy.h"

namespace plenum::plan {

/// The steps' micro-batches with those of the replicas that have the most operations before all others': so
/// that the replicas that are written out are those that others wait for. `model` is the whole one.
std::vector<StepWork> busiest_first(std::vector<StepWork> steps, std::size_t num_replicas,
                                    const describe::ModelDescription& model);

/// A step as it is expected to be.
struct SimulatedStep {
  double seconds = 0;  ///< in the mean
  double least_seconds = 0;
  double most_seconds = 0;
  double utilization = 0;  ///< busy compute time of the ranks that are written out over their time
};

StepCostOptions cost_options(const Strategy& strategy, const describe::ModelDescription& model);

/// Simulates the steps on the replicas that are written out, with collectives that cost what they cost among
/// all. Where replicas have the same work, that is what a simulation of all gives (shards differ by 128
/// elements at most); where some have more, nearly so.
SimulatedStep simulate_steps(const Strategy& strategy, const describe::ModelDescription& model,
                             const AbridgedSchedule& schedule, const std::vector<StepWork>& steps,
                             const Cluster& cluster);

}  // namespace plenum::plan

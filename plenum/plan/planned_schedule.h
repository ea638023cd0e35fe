#pragma once

#include <cstddef>

#include "plenum/plan/cluster.h"
#include "plenum/plan/step_sampler.h"
#include "plenum/plan/step_schedule.h"
#include "plenum/plan/step_work.h"

namespace plenum::plan {

/// Steps of a strategy with all that its optimizer does, as train would run them.
struct PlannedSchedule {
  AbridgedSchedule steps;    ///< a cycle
  double refresh_steps = 0;  ///< from one refresh of K-FAC or SOAP to the next; 0 where nothing is refreshed
  bool fills_bubbles = false;  ///< with refreshes; false, too, where they find no room there
};

/// How many replicas are written out of a strategy where the options of a search say `most_replicas`: more
/// where ranks divide work on matrices, since then no two of them have the same.
std::size_t num_written_replicas(const Strategy& strategy, std::size_t most_replicas);

/// Of a pipeline whose bubbles are to be filled, they are filled by what actions take in a step like `step`
/// (of all replicas) on the cluster. Where that finds no room, refreshes are done outside bubbles.
PlannedSchedule planned_schedule(const Strategy& strategy, const describe::ModelDescription& model,
                                 const batch::Work& typical, const StepLimits& limits, const StepWork& step,
                                 const Cluster& cluster, std::size_t most_replicas);

}  // namespace plenum::plan

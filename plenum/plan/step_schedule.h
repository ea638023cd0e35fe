#pragma once

#include <cstddef>

#include "plenum/batch/work.h"
#include "plenum/describe/model_description.h"
#include "plenum/plan/strategy.h"
#include "plenum/schedule/core/schedule.h"

namespace plenum::plan {

/// What a step of a strategy does, but for what a preconditioner adds: what train runs and the planner
/// simulates. Of a pipeline, stages have the layers that the strategy says, or such that the dearest does as
/// few operations as can be on work like `typical`. `model` is the whole one. Throws UserError if model and
/// strategy do not belong together.
schedule::Schedule step_schedule(const Strategy& strategy, const describe::ModelDescription& model,
                                 const batch::Work& typical, std::size_t micro_batches_per_replica);

/// The number of micro-batches of a replica should be a multiple of it.
std::size_t micro_batch_multiple(const Strategy& strategy);

/// A step of many replicas, all laid out alike, of which only the first are written out.
struct AbridgedSchedule {
  schedule::Schedule written;  ///< of the first replicas, as if there were no others: runs by itself
  schedule::Schedule whole;    ///< of all; ranks of others than the first have stages, but nothing to do
};

/// The step_schedule() of a strategy with at most so many replicas written out, at least 2.
AbridgedSchedule abridged_schedule(const Strategy& strategy, const describe::ModelDescription& model,
                                   const batch::Work& typical, std::size_t micro_batches_per_replica,
                                   std::size_t most_replicas);

}  // namespace plenum::plan

#pragma once

#include <cstddef>
#include <vector>

#include "plenum/batch/capacity.h"
#include "plenum/describe/model_description.h"
#include "plenum/memory/rank_memory.h"
#include "plenum/plan/memory_report.h"
#include "plenum/plan/step_schedule.h"
#include "plenum/plan/strategy.h"

namespace plenum::plan {

/// What the engine plans memory for. `num_threads` are those of a rank on the CPU.
memory::MemoryRequest memory_request(const Strategy& strategy, const batch::Capacity& capacity,
                                     std::size_t num_threads);

/// What training takes where every rank is a process.
struct StrategyMemory {
  std::vector<std::size_t> rank_bytes = {};  ///< of the ranks of the first replica; others take as much
  std::size_t peak_rank = 0;                 ///< the first of those that take the most
  MemoryReport peak = {};                    ///< of that rank, by purpose
  std::size_t total_bytes = 0;               ///< over all ranks of the run

  std::size_t peak_bytes() const { return peak.planned_bytes; }
};

/// Every byte that is planned for the strategy's `schedule`, with the weights of the whole model where a
/// process needs them beside its part. Evaluation is not counted. `model` is the whole one. Throws UserError
/// for what the device cannot compute.
StrategyMemory strategy_memory(const Strategy& strategy, const describe::ModelDescription& model,
                               const AbridgedSchedule& schedule, const batch::Capacity& capacity,
                               std::size_t num_threads);

}  // namespace plenum::plan

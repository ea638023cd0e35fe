#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plenum/batch/capacity.h"
#include "plenum/describe/model_description.h"
#include "plenum/memory/rank_memory.h"
#include "plenum/plan/cluster.h"
#include "plenum/plan/process_memory.h"
#include "plenum/plan/step_schedule.h"
#include "plenum/plan/step_work.h"
#include "plenum/plan/strategy.h"
#include "plenum/tensor/memory_layout.h"

namespace plenum::plan {

/// What the engine plans memory for. `num_threads` are those of a rank on the CPU.
memory::MemoryRequest memory_request(const Strategy& strategy, const batch::Capacity& capacity,
                                     std::size_t num_threads);

/// How ranks lie in processes: as threads of one, which plenum train --ranks starts, or each in its own, as
/// mpirun, srun and --gpus start them.
enum class Processes : std::uint8_t { One, EachRank };
/// Those of CPUs are one process while a node has room for all.
Processes processes_of(const Cluster& cluster, std::size_t num_ranks);

/// What decides memory beside strategy, model and schedule.
struct MemorySetting {
  batch::Capacity capacity;     ///< of a micro-batch
  std::size_t num_threads = 1;  ///< of a rank on the CPU
  Processes processes = Processes::EachRank;
  std::optional<batch::Capacity> evaluated = {};  ///< of what is held out; nothing where none is
  std::size_t known_outside_bytes = 0;            ///< ProcessShare's
  std::optional<LargestStep> largest = {};        ///< ProcessShare::largest
};

/// What training takes.
struct StrategyMemory {
  Processes processes = Processes::EachRank;
  MemoryReport peak = {};       ///< of the process that takes the most, by purpose
  std::size_t peak_rank = 0;    ///< the first rank of that process
  std::size_t total_bytes = 0;  ///< of all processes of the run

  /// Of the process that takes the most, at most: what has to fit.
  std::size_t peak_bytes() const { return peak.most_bytes(); }
};

/// Every byte that plenum train plans for the strategy's `schedule`, process by process. `model` is the whole
/// one. Throws UserError for what the device cannot compute.
StrategyMemory strategy_memory(const Strategy& strategy, const describe::ModelDescription& model,
                               const AbridgedSchedule& schedule, const MemorySetting& setting);

/// The arenas of the first replica's ranks, by purpose. Those of others are as large, but for how the
/// elements of a shard are rounded.
std::vector<tensor::MemoryLayout> rank_arenas(const Strategy& strategy,
                                              const describe::ModelDescription& model,
                                              const AbridgedSchedule& schedule, const MemorySetting& setting);

}  // namespace plenum::plan

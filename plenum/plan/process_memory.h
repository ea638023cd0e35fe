#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "plenum/base/ids.h"
#include "plenum/batch/capacity.h"
#include "plenum/describe/model_description.h"
#include "plenum/memory/rank_memory.h"
#include "plenum/plan/memory_report.h"
#include "plenum/plan/step_work.h"
#include "plenum/schedule/core/schedule.h"

namespace plenum::plan {

/// Steps whose batches a process has in the host's memory.
inline constexpr std::size_t kStepsOfBatches = 4;

/// What a process takes of a CPU's memory whatever it trains: program, libraries, what the allocator keeps,
/// and data as they are read.
inline constexpr std::size_t kProgramBytes = 20'000'000;
/// What MPI takes on top of it.
inline constexpr std::size_t kMpiBytes = 10'000'000;

/// What lies outside the plan: what is known of the machine, on a CPU no less than programs take.
std::size_t outside_bytes(tensor::Device device, bool has_all_ranks, std::size_t known_bytes);

/// What a process of a run has.
struct ProcessShare {
  /// A rank of the run, and how many of the process's take as much as it does, itself included.
  struct Ranks {
    base::Rank rank;
    std::size_t count = 1;
  };
  std::vector<Ranks> ranks;
  bool has_all_ranks = false;         ///< of the run, as threads; otherwise other processes have the others
  std::size_t num_micro_batches = 0;  ///< that it makes for a step
  std::optional<batch::Capacity> evaluated = {};  ///< of what is held out; nothing where none is
  std::optional<LargestStep> largest = {};        ///< that micro-batches reach; MemoryReport::untouched_bytes
  std::size_t known_outside_bytes = 0;            ///< outside_bytes()

  std::size_t num_ranks() const;
};

/// What training takes in a process: the arenas of its ranks, on the CPU batches and threads too, the weights
/// of the whole model where it needs them beside its part, and evaluation. `num_slices` ranks of the run are
/// one of the schedule, in the order of train's mesh. `model` is the whole one. Throws UserError for what the
/// device cannot compute.
MemoryReport process_memory(const schedule::Schedule& schedule, const describe::ModelDescription& model,
                            std::size_t num_slices, const memory::MemoryRequest& request,
                            const ProcessShare& share);

/// The arena of a rank.
tensor::MemoryLayout rank_arena(const schedule::Schedule& schedule, const describe::ModelDescription& model,
                                std::size_t num_slices, const memory::MemoryRequest& request,
                                base::Rank rank);

}  // namespace plenum::plan

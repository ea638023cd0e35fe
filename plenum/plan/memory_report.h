#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plenum/base/ids.h"
#include "plenum/describe/model_description.h"
#include "plenum/memory/rank_memory.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/tensor/device.h"
#include "plenum/tensor/memory_layout.h"

namespace plenum::plan {

/// The memory of a run as it was planned, by purpose.
struct MemoryReport {
  tensor::Device device = tensor::Device::Cpu;  ///< whose memory it is
  std::vector<tensor::MemoryLayout::Line>
      lines;  ///< of all ranks: arenas, on the CPU batches and threads too
  /// Of a pipeline, on whichever process: the rank with the largest arena.
  struct RankBytes {
    base::Rank rank;
    std::size_t bytes = 0;
  };
  std::optional<RankBytes> largest_rank = {};
  std::size_t planned_bytes = 0;  ///< of all; where purposes share memory, less than the lines' sum
};

/// Adds the memory of one arena.
void add_arena(const tensor::MemoryLayout& arena, MemoryReport& report);
/// Adds what is for another purpose.
void add_line(const std::string& purpose, std::size_t bytes, MemoryReport& report);

/// Steps whose batches a process has in the host's memory.
inline constexpr std::size_t kStepsOfBatches = 4;

/// What a process of a run has.
struct ProcessShare {
  std::vector<base::Rank> ranks;      ///< of the run
  std::size_t num_micro_batches = 0;  ///< that it makes for a step
};

/// What training takes in a process: the arenas of its ranks, on the CPU batches and threads too.
/// `num_slices` ranks of the run are one of the schedule, in the order of train's mesh. `model` is the whole
/// one.
MemoryReport process_memory(const schedule::Schedule& schedule, const describe::ModelDescription& model,
                            std::size_t num_slices, const memory::MemoryRequest& request,
                            const ProcessShare& share);

}  // namespace plenum::plan

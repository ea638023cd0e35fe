#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plenum/base/ids.h"
#include "plenum/tensor/device.h"
#include "plenum/tensor/memory_layout.h"

namespace plenum::plan {

/// The memory of a process of a run as it was planned, by purpose.
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
  /// Of the arenas, what no micro-batch is large enough to touch, as far as they were looked at: planned, but
  /// not taken from the machine. Not of a GPU, whose memory is taken as it is planned.
  std::size_t untouched_bytes = 0;
  std::size_t outside_bytes = 0;  ///< that the process takes beside the plan, whatever it trains

  /// What the process takes at most.
  std::size_t most_bytes() const { return planned_bytes + outside_bytes; }
  /// What is to be seen of it: its peak.
  std::size_t expected_bytes() const { return most_bytes() - untouched_bytes; }
};

/// Adds the memory of so many arenas alike.
void add_arenas(const tensor::MemoryLayout& arena, std::size_t count, MemoryReport& report);
/// Adds what is for another purpose.
void add_line(const std::string& purpose, std::size_t bytes, MemoryReport& report);

}  // namespace plenum::plan

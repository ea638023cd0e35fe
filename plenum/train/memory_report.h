#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plenum/base/ids.h"
#include "plenum/tensor/device.h"
#include "plenum/tensor/memory_layout.h"

namespace plenum::train {

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

/// "planned 84.2 MB (parameters 18.0 MB, ...); the process's peak was 103 MB, 18.8 MB of it outside the
/// plan", or "the GPU gave". `used_bytes` is what was really taken: DeviceMemory::used_bytes.
std::string memory_text(const MemoryReport& report, std::uint64_t used_bytes);

}  // namespace plenum::train

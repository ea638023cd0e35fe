#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plenum/tensor/memory_layout.h"

namespace plenum::train {

/// The memory of a run: what was planned, by purpose, beside what the process really took.
struct MemoryReport {
  std::vector<tensor::MemoryLayout::Line> lines;  ///< of the arenas of all ranks
  std::size_t planned_bytes = 0;  ///< of all arenas; where purposes share memory, less than the lines' sum
};

/// "planned 84.2 MB (parameters 18.0 MB, ...), peak of the process 103 MB, 18.8 MB of it outside the plan".
std::string memory_text(const MemoryReport& report, std::uint64_t peak_bytes);

}  // namespace plenum::train

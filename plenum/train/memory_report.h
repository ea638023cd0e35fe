#pragma once

#include <cstdint>
#include <string>

#include "plenum/plan/memory_report.h"

namespace plenum::train {

using plan::MemoryReport;

/// "planned 84.2 MB (parameters 18.0 MB, ...); the process's peak was 103 MB, 18.8 MB of it outside the
/// plan", or "the GPU gave". `used_bytes` is what was really taken: DeviceMemory::used_bytes.
std::string memory_text(const MemoryReport& report, std::uint64_t used_bytes);

}  // namespace plenum::train

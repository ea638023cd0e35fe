#include "plenum/train/memory_report.h"

#include <fmt/format.h>

#include "plenum/base/units.h"

namespace plenum::train {

std::string memory_text(const MemoryReport& report, std::uint64_t peak_bytes) {
  std::string purposes;
  for (const tensor::MemoryLayout::Line& line : report.lines) {
    purposes +=
        fmt::format("{}{} {}", purposes.empty() ? "" : ", ", line.purpose, base::format_bytes(line.bytes));
  }
  const std::uint64_t outside = peak_bytes > report.planned_bytes ? peak_bytes - report.planned_bytes : 0;
  return fmt::format("planned {} ({}); the process's peak was {}, {} of it outside the plan",
                     base::format_bytes(report.planned_bytes), purposes, base::format_bytes(peak_bytes),
                     base::format_bytes(outside));
}

}  // namespace plenum::train

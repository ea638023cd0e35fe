#include "plenum/train/memory_report.h"

#include <fmt/format.h>

#include "plenum/base/units.h"

namespace plenum::train {

std::string memory_text(const MemoryReport& report, std::uint64_t used_bytes) {
  std::string purposes;
  for (const tensor::MemoryLayout::Line& line : report.lines) {
    purposes +=
        fmt::format("{}{} {}", purposes.empty() ? "" : ", ", line.purpose, base::format_bytes(line.bytes));
  }
  const std::uint64_t outside = used_bytes > report.planned_bytes ? used_bytes - report.planned_bytes : 0;
  const std::string largest = report.largest_rank
                                  ? fmt::format(", rank {} the most: {}", report.largest_rank->rank.value,
                                                base::format_bytes(report.largest_rank->bytes))
                                  : "";
  return fmt::format("planned {} ({}{}); {} {}, {} of it outside the plan",
                     base::format_bytes(report.planned_bytes), purposes, largest,
                     report.device == tensor::Device::Cpu ? "the process's peak was" : "the GPU gave",
                     base::format_bytes(used_bytes), base::format_bytes(outside));
}

}  // namespace plenum::train

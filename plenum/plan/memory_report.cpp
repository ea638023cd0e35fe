#include "plenum/plan/memory_report.h"

#include <algorithm>

namespace plenum::plan {

void add_arenas(const tensor::MemoryLayout& arena, std::size_t count, MemoryReport& report) {
  report.planned_bytes += count * arena.num_bytes();
  for (const auto& [purpose, bytes] : arena.lines()) {
    const auto known = std::ranges::find(report.lines, purpose, &tensor::MemoryLayout::Line::purpose);
    if (known == report.lines.end()) {
      report.lines.push_back({purpose, count * bytes});
    } else {
      known->bytes += count * bytes;
    }
  }
}

void add_line(const std::string& purpose, std::size_t bytes, MemoryReport& report) {
  report.planned_bytes += bytes;
  report.lines.push_back({purpose, bytes});
}

}  // namespace plenum::plan

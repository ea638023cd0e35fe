#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "plenum/plan/memory_report.h"

namespace plenum::test {

/// The bytes that a plan has for a purpose; 0 if it names none.
inline std::size_t bytes_for(const plan::MemoryReport& report, std::string_view purpose) {
  const auto line = std::ranges::find(report.lines, purpose, &tensor::MemoryLayout::Line::purpose);
  return line == report.lines.end() ? 0 : line->bytes;
}

}  // namespace plenum::test

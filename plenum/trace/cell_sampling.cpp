#include "plenum/trace/cell_sampling.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace plenum::trace {
namespace {

/// What one category has in one cell.
struct Part {
  double seconds = 0;
  double longest_seconds = 0;
  std::uint32_t longest = kIdleCell;
};
using Cell = std::array<Part, kNumCategories>;

std::uint32_t shown_in(const Cell& cell, double cell_seconds) {
  double busy = 0;
  for (const Part& part : cell) busy += part.seconds;
  if (busy < cell_seconds / 2) return kIdleCell;
  const auto greatest = std::max_element(cell.begin(), cell.end(),
                                         [](const Part& a, const Part& b) { return a.seconds < b.seconds; });
  return greatest->longest;
}

}  // namespace

std::vector<std::uint32_t> sample_cells(std::span<const Span> spans, double from_seconds, double to_seconds,
                                        std::size_t num_cells) {
  std::vector<Cell> cells(num_cells);
  const double cell_seconds = (to_seconds - from_seconds) / static_cast<double>(num_cells);
  if (!(cell_seconds > 0)) return std::vector<std::uint32_t>(num_cells, kIdleCell);
  for (std::size_t index = 0; index < spans.size(); ++index) {
    const Span& span = spans[index];
    const double start = std::max(span.start_seconds, from_seconds);
    const double end = std::min(span.end_seconds, to_seconds);
    if (end <= start) continue;
    const auto first = static_cast<std::size_t>((start - from_seconds) / cell_seconds);
    for (std::size_t cell = first; cell < num_cells; ++cell) {
      const double cell_start = from_seconds + static_cast<double>(cell) * cell_seconds;
      if (cell_start >= end) break;
      const double overlap = std::min(end, cell_start + cell_seconds) - std::max(start, cell_start);
      Part& part = cells[cell][static_cast<std::size_t>(span.category)];
      part.seconds += overlap;
      if (overlap > part.longest_seconds) {
        part.longest_seconds = overlap;
        part.longest = static_cast<std::uint32_t>(index);
      }
    }
  }
  std::vector<std::uint32_t> shown;
  for (const Cell& cell : cells) shown.push_back(shown_in(cell, cell_seconds));
  return shown;
}

}  // namespace plenum::trace

#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "plenum/trace/timeline.h"

namespace plenum::trace {

inline constexpr std::uint32_t kIdleCell = std::numeric_limits<std::uint32_t>::max();

/// Divides [from, to) into equal cells and finds for each what to show: kIdleCell if less than half of it is
/// busy, else the longest span of the category that takes most of it, as an index into `spans`.
std::vector<std::uint32_t> sample_cells(std::span<const Span> spans, double from_seconds, double to_seconds,
                                        std::size_t num_cells);

}  // namespace plenum::trace

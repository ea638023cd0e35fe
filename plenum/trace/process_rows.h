#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plenum/trace/timeline.h"

namespace plenum::trace {

/// The spans of one track. Borrows the timeline.
struct TrackSpans {
  std::uint32_t track = 0;
  std::span<const Span> spans = {};
};

/// What drawings show of one process: its first track large, the others beside it.
struct ProcessRow {
  std::uint32_t process = 0;
  std::vector<TrackSpans> tracks = {};
};

/// One row for each process, in order of the timeline's tracks. Borrows the timeline.
std::vector<ProcessRow> process_rows(const Timeline& timeline);

/// The time in [from, to) that spans cover.
double busy_seconds(std::span<const Span> spans, double from_seconds, double to_seconds);

/// The different stages that the spans name, ascending.
std::vector<std::uint16_t> stages_of(std::span<const Span> spans);

}  // namespace plenum::trace

#include "plenum/trace/process_rows.h"

#include <algorithm>

namespace plenum::trace {

std::vector<ProcessRow> process_rows(const Timeline& timeline) {
  std::vector<ProcessRow> rows;
  std::size_t begin = 0;
  for (std::uint32_t track = 0; track < timeline.tracks.size(); ++track) {
    std::size_t end = begin;
    while (end < timeline.spans.size() && timeline.spans[end].track == track) ++end;
    const std::uint32_t process = timeline.tracks[track].process;
    if (rows.empty() || rows.back().process != process) rows.push_back({.process = process});
    rows.back().tracks.push_back({track, std::span(timeline.spans).subspan(begin, end - begin)});
    begin = end;
  }
  return rows;
}

double busy_seconds(std::span<const Span> spans, double from_seconds, double to_seconds) {
  double sum = 0;
  for (const Span& span : spans) {
    const double start = std::max(span.start_seconds, from_seconds);
    const double end = std::min(span.end_seconds, to_seconds);
    sum += std::max(0.0, end - start);
  }
  return sum;
}

std::vector<std::uint16_t> stages_of(std::span<const Span> spans) {
  std::vector<std::uint16_t> stages;
  for (const Span& span : spans) {
    if (span.stage == kNoStage) continue;
    const auto place = std::lower_bound(stages.begin(), stages.end(), span.stage);
    if (place == stages.end() || *place != span.stage) stages.insert(place, span.stage);
  }
  return stages;
}

}  // namespace plenum::trace

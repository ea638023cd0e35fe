#include "plenum/trace/timeline.h"

#include <algorithm>
#include <array>
#include <limits>

namespace plenum::trace {

std::string_view category_name(Category category) {
  static constexpr std::array<std::string_view, kNumCategories> kNames = {
      "forward",   "backward",     "input gradient", "weight gradient", "recompute",  "curvature",
      "inversion", "precondition", "update",         "message",         "collective", "other"};
  return kNames[static_cast<std::size_t>(category)];
}

Timeline first_steps(const Timeline& timeline, std::size_t num_steps) {
  if (timeline.step_begin_seconds.size() <= num_steps) return timeline;
  constexpr std::uint32_t kLeftOut = std::numeric_limits<std::uint32_t>::max();
  Timeline part = timeline;
  part.end_seconds = timeline.step_begin_seconds[num_steps];
  part.step_begin_seconds.resize(num_steps);
  part.spans.clear();
  part.flows.clear();
  std::vector<std::uint32_t> places(timeline.spans.size(), kLeftOut);
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    Span span = timeline.spans[i];
    if (span.start_seconds >= part.end_seconds) continue;
    span.end_seconds = std::min(span.end_seconds, part.end_seconds);
    places[i] = static_cast<std::uint32_t>(part.spans.size());
    part.spans.push_back(span);
  }
  for (const Flow& flow : timeline.flows) {
    if (places[flow.from] == kLeftOut || places[flow.to] == kLeftOut) continue;
    part.flows.push_back({places[flow.from], places[flow.to]});
  }
  return part;
}

}  // namespace plenum::trace

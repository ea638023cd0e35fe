#include "plenum/trace/timeline.h"

#include <array>

namespace plenum::trace {

std::string_view category_name(Category category) {
  static constexpr std::array<std::string_view, kNumCategories> kNames = {
      "forward",   "backward",     "input gradient", "weight gradient", "recompute",  "curvature",
      "inversion", "precondition", "update",         "message",         "collective", "other"};
  return kNames[static_cast<std::size_t>(category)];
}

double mean_step_seconds(const Timeline& timeline) {
  if (timeline.step_seconds) return *timeline.step_seconds;
  const std::vector<double>& begins = timeline.step_begin_seconds;
  if (begins.size() < 2) return timeline.end_seconds - timeline.begin_seconds;
  return (begins.back() - begins.front()) / static_cast<double>(begins.size() - 1);
}

}  // namespace plenum::trace

#include "plenum/trace/timeline.h"

#include <array>

namespace plenum::trace {

std::string_view category_name(Category category) {
  static constexpr std::array<std::string_view, kNumCategories> kNames = {
      "forward",   "backward",     "input gradient", "weight gradient", "recompute",  "curvature",
      "inversion", "precondition", "update",         "message",         "collective", "other"};
  return kNames[static_cast<std::size_t>(category)];
}

}  // namespace plenum::trace

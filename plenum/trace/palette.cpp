#include "plenum/trace/palette.h"

#include <array>

namespace plenum::trace {
namespace {

constexpr std::array<CategoryStyle, kNumCategories> kStyles = {{
    {'F', 117, 75, "#8db8f4", Hatch::None},      // forward
    {'B', 120, 77, "#84d3a2", Hatch::None},      // backward
    {'I', 86, 43, "#66cdc4", Hatch::None},       // input gradient
    {'W', 192, 149, "#bfdc8a", Hatch::None},     // weight gradient
    {'R', 189, 146, "#bcc3e6", Hatch::None},     // recompute
    {'k', 221, 214, "#ffbe5c", Hatch::Rising},   // curvature
    {'i', 210, 203, "#f2847b", Hatch::Crossed},  // inversion
    {'p', 219, 176, "#dba3ee", Hatch::Upright},  // precondition
    {'u', 252, 246, "#c9c3ba", Hatch::None},     // update
    {'m', 250, 245, "#9aa7b5", Hatch::None},     // message
    {'c', 180, 137, "#cfa272", Hatch::None},     // collective
    {'o', 254, 248, "#d0d0d0", Hatch::None},     // other
}};

}  // namespace

const CategoryStyle& style_of(Category category) {
  return kStyles[static_cast<std::size_t>(category)];
}

}  // namespace plenum::trace

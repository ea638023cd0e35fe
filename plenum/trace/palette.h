#pragma once

#include <cstdint>
#include <string_view>

#include "plenum/trace/timeline.h"

namespace plenum::trace {

/// What tells fillers from the pipeline's own work where colour alone would not.
enum class Hatch : std::uint8_t { None, Rising, Crossed, Upright };

/// How a category looks in every drawing. Work of the pipeline is cool, fillers are warm and hatched; all
/// colours are light enough for dark text on them, so they stand on dark and light backgrounds alike.
struct CategoryStyle {
  char letter;                  ///< without colour; fillers are small letters
  std::uint8_t terminal_color;  ///< of the 256 of a terminal
  std::uint8_t terminal_shade;  ///< the same a little darker, to tell neighbours apart
  std::string_view color;       ///< #rrggbb
  Hatch hatch;
};
const CategoryStyle& style_of(Category category);

}  // namespace plenum::trace

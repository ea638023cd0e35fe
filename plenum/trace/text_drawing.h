#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "plenum/trace/timeline.h"

namespace plenum::trace {

/// How to draw in a terminal.
struct TextDrawingOptions {
  std::size_t width = 100;  ///< columns of every row; at least 48
  enum class Color { No, Yes } color = Color::No;
  enum class Tracks { Computation, All } tracks = Tracks::Computation;
  double from_seconds = 0;  ///< what to show, counted from the beginning of the timeline
  double to_seconds = std::numeric_limits<double>::infinity();
  std::size_t most_processes = 32;  ///< further ones are counted, not drawn
};

/// Draws a timeline for a terminal, as UTF-8 text of one row per rank between a title, the steps, a time axis
/// and a legend; the busy part of each rank stands at its end. Without colour a block is its letter, its
/// micro-batch where that fits, and a line; with colour (256-colour escapes) it is a field with its
/// micro-batch, drawn to half a column. A column shows what took most of its time.
std::string draw_text(const Timeline& timeline, const TextDrawingOptions& options = {});

}  // namespace plenum::trace

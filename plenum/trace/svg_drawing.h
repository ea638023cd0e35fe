#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "plenum/trace/timeline.h"

namespace plenum::trace {

struct SvgDrawingOptions {
  std::optional<std::size_t> width = std::nullopt;  ///< pixels; absent: 1200, more for more than four steps
  double from_seconds = 0;  ///< what to show, counted from the beginning of the timeline
  double to_seconds = std::numeric_limits<double>::infinity();
  /// Tracks beside the computation, as thin strips below it where anything on them takes time.
  enum class Tracks { Computation, All } tracks = Tracks::All;
  std::size_t most_processes = 64;  ///< further ones are counted, not drawn
  std::size_t most_arrows = 160;    ///< with more flows than this, none is drawn
};

/// Draws a timeline as an SVG file that needs nothing else: one row per rank with its stages, fillers hatched
/// and of warm colours, idle time empty, steps, legend, axis, and a tooltip on every block. It follows the
/// reader's light or dark scheme.
std::string draw_svg(const Timeline& timeline, const SvgDrawingOptions& options = {});

/// "stage 2", "stages 0, 3", "stages 0-3": what a row works on; empty for none.
std::string stages_text(const std::vector<std::uint16_t>& stages);

}  // namespace plenum::trace

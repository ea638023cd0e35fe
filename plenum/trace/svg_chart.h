#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plenum/trace/timeline.h"

namespace plenum::trace {

/// A track drawn as a thin strip below its row.
struct SvgStrip {
  std::string label;
  std::span<const Span> spans = {};
};

/// One row of a chart: a track drawn large, and strips. Borrows its timeline.
struct SvgRow {
  std::string label;
  std::string detail = {};  ///< quiet, behind the label
  std::string note = {};    ///< at the right edge
  const Timeline* timeline = nullptr;
  std::span<const Span> spans = {};
  std::vector<SvgStrip> strips = {};
  bool begins_group = false;  ///< stands a little apart from the row above
};

/// A thin arrow from one strip (or row, where it has none) to another.
struct SvgArrow {
  std::size_t from_row = 0;
  std::size_t from_strip = 0;
  double from_seconds = 0;
  std::size_t to_row = 0;
  std::size_t to_strip = 0;
  double to_seconds = 0;
};

/// Rows of spans over one time axis.
struct SvgChart {
  std::string title;
  std::string subtitle;
  std::string footnote;
  double from_seconds = 0;  ///< what to show; all times count from the beginning of the rows' timelines
  double to_seconds = 0;
  std::vector<double> step_seconds;  ///< where steps begin
  std::vector<SvgRow> rows;
  std::vector<SvgArrow> arrows;
  std::size_t width = 1200;  ///< pixels
};

/// Draws a chart as an SVG file that needs nothing else: title, legend of what occurs, rows with a tooltip on
/// every block, steps, and an axis with round ticks. Blocks too narrow to be seen apart are drawn as one.
std::string write_svg(const SvgChart& chart);

}  // namespace plenum::trace

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plenum/report/axis.h"

namespace plenum::report {

/// A quantity over the steps of a run.
struct Curve {
  std::string name;
  std::size_t color = 0;  ///< one of kNumColors
  enum class Style { Line, Pale, Dots } style = Style::Line;
  std::vector<double> step;
  std::vector<double> seconds;  ///< of training, of each step; may be empty
  std::vector<double> tokens;   ///< trained on, likewise
  std::vector<double> value;    ///< those that are not finite are not drawn
};
inline constexpr std::size_t kNumColors = 8;

/// Something that happened at a step.
struct ChartMark {
  double step = 0;
  std::string text;
};

struct LineChart {
  std::string title;
  std::string unit;  ///< of the values, in words; may be empty
  std::vector<Curve> curves;
  std::vector<ChartMark> marks = {};
  Scale scale = Scale::Linear;
  bool from_zero = false;   ///< whether the axis begins at 0
  bool in_percent = false;  ///< values are shares
  std::string note = {};    ///< a sentence below
};

/// The chart as SVG with its labels beside, so that it takes any width; a table of its numbers; and its data
/// for the page's script, which adds a read-out, zoom, and other axes. Of every curve at most kMostPoints
/// points are kept, extremes among them. Empty where there is no value at all.
inline constexpr std::size_t kMostPoints = 1600;
std::string line_chart_html(const LineChart& chart);

}  // namespace plenum::report

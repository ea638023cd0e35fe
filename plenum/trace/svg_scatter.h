#pragma once

#include <string>
#include <vector>

namespace plenum::trace {

/// A mark of a scatter plot, by its tooltip.
struct ScatterPoint {
  double x = 0;
  double y = 0;
  std::string label = {};
};

/// Points of one colour.
struct ScatterSeries {
  std::string name;  ///< in the legend
  std::vector<ScatterPoint> points;
};

/// Two quantities of the same unit against each other.
struct ScatterPlot {
  std::string title;
  std::string subtitle;
  std::string x_label;
  std::string y_label;
  std::vector<ScatterSeries> series = {};
  enum class Axes { Linear, Logarithmic } axes = Axes::Linear;
  double band = 0;  ///< drawn around the diagonal: 0.05 for 5 %
};

/// Draws the plot as an SVG file that needs nothing else: both axes alike, the diagonal, a legend, and a
/// tooltip on every mark. Points that are not finite, or not above 0 on logarithmic axes, are left out.
std::string write_svg(const ScatterPlot& plot);

}  // namespace plenum::trace

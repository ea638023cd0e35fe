#pragma once

#include <string>
#include <vector>

#include "plenum/packing/histogram.h"

namespace plenum::cli {

/// Draws how many sequences there are by length, as lines of at most `width` columns with `height` rows of
/// bars above an axis. Bars grow with the square root of the count, so that a peak does not flatten the rest;
/// the labels beside them are true counts. A bar covers several lengths where there are more than columns.
/// Empty for an empty histogram. width at least 24, height at least 2.
std::string draw_histogram(const packing::LengthHistogram& histogram, int width, int height);

/// A value of a curve.
struct CurvePoint {
  double x = 0;
  double y = 0;
};

/// Draws a curve of points with growing x as lines of at most `width` columns: `height` rows, from the least
/// to the greatest y, above an axis that has the first and the last x. Points that share a column are drawn
/// as their mean. Empty without points. width at least 24, height at least 2.
std::string draw_curve(const std::vector<CurvePoint>& points, int width, int height);

}  // namespace plenum::cli

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plenum/trace/timeline.h"

namespace plenum::report {

/// A part of a bar. Its colour is a class of the page's style: "c0", or that of a category of work.
struct BarPart {
  std::string name;
  std::string color;
  double value = 0;
  std::string text;  ///< the value as it is read
};

struct Bar {
  std::string label;           ///< may be empty
  std::vector<BarPart> parts;  ///< from left to right
  std::string text;            ///< at the right edge
};

/// Bars below each other, of one scale.
struct BarChart {
  std::string title;
  std::vector<Bar> bars;
  double whole = 0;        ///< what fills the width; 0: the longest bar
  bool has_legend = true;  ///< where bars have several parts
  std::string note = {};
};
/// With a table of its numbers. Empty where there is no bar.
std::string bar_chart_html(const BarChart& chart);

/// Counts of neighbouring sizes as columns.
struct ColumnChart {
  std::string title;
  std::string size_name;            ///< "tokens in a sequence"
  std::string count_name;           ///< "sequences"
  std::vector<std::string> labels;  ///< of the sizes
  std::vector<std::string> marks;   ///< shorter ones, for the axis
  std::vector<double> counts;
  std::string note = {};
};
/// With a table of its numbers. Empty where nothing was counted.
std::string column_chart_html(const ColumnChart& chart);

/// The class that a category of work is drawn with.
std::string_view color_of(trace::Category category);

}  // namespace plenum::report

#include "plenum/trace/svg_scatter.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plenum::trace {
namespace {

using testing::HasSubstr;
using testing::Not;

ScatterPlot plot_of(std::vector<ScatterPoint> points, ScatterPlot::Axes axes) {
  return {.title = "a & b",
          .subtitle = "c",
          .x_label = "x",
          .y_label = "y",
          .series = {{.name = "first", .points = std::move(points)}},
          .axes = axes};
}

TEST(SvgScatter, PutsEqualCoordinatesOnTheDiagonal) {
  // Both axes are 520 pixels long, from 76 on: what is above the left edge is as far from the lower one.
  const std::string svg = write_svg(plot_of(
      {{.x = 1, .y = 1, .label = "low"}, {.x = 9, .y = 9, .label = "high"}}, ScatterPlot::Axes::Linear));
  EXPECT_THAT(svg, HasSubstr("<title>low</title>"));
  EXPECT_THAT(svg, HasSubstr("a &amp; b"));
  EXPECT_THAT(svg, HasSubstr("cx=\"111.86\" cy=\"560.14\""));
  EXPECT_THAT(svg, HasSubstr("cx=\"560.14\" cy=\"111.86\""));
}

TEST(SvgScatter, LeavesOutWhatHasNoPlace) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<ScatterPoint> points = {{.x = 0, .y = 1, .label = "zero"},
                                            {.x = infinity, .y = 1, .label = "endless"},
                                            {.x = 10, .y = 20, .label = "there"}};
  const std::string logarithmic = write_svg(plot_of(points, ScatterPlot::Axes::Logarithmic));
  EXPECT_THAT(logarithmic, AllOf(HasSubstr("there"), Not(HasSubstr("zero")), Not(HasSubstr("endless"))));
  const std::string linear = write_svg(plot_of(points, ScatterPlot::Axes::Linear));
  EXPECT_THAT(linear, AllOf(HasSubstr("there"), HasSubstr("zero"), Not(HasSubstr("endless"))));
}

TEST(SvgScatter, DrawsAxesOfNothing) {
  for (const auto axes : {ScatterPlot::Axes::Linear, ScatterPlot::Axes::Logarithmic}) {
    const std::string svg = write_svg(plot_of({}, axes));
    EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

TEST(SvgScatter, ADirectionHasATickEvenForOnePoint) {
  for (const auto axes : {ScatterPlot::Axes::Linear, ScatterPlot::Axes::Logarithmic}) {
    const std::string svg = write_svg(plot_of({{.x = 5, .y = 5, .label = "only"}}, axes));
    EXPECT_THAT(svg, HasSubstr(">5</text>"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
  }
}

}  // namespace
}  // namespace plenum::trace

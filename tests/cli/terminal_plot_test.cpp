#include "plenum/cli/terminal_plot.h"

#include <algorithm>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plenum::cli {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(DrawHistogram, DrawsBarsThatGrowWithTheSquareRoot) {
  // Five lengths over twenty columns: full height, half of it, a quarter, none.
  const std::vector<std::string> lines = lines_of(draw_histogram({{0, 1600, 400, 100, 0, 1}}, 28, 4));
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0], "  1.6k ┤████");
  EXPECT_EQ(lines[1], "       │████");
  EXPECT_EQ(lines[2], "   400 ┤████████");
  EXPECT_EQ(lines[3], "       │████████████    ▁▁▁▁");
  EXPECT_EQ(lines[4], "       └────────────────────");
  EXPECT_EQ(lines[5], "        1    2    3    4   5");
}

TEST(DrawHistogram, KeepsToItsWidthForAnyNumberOfLengths) {
  for (const std::size_t longest : {1, 2, 71, 72, 73, 143, 512, 8192}) {
    for (const int width : {24, 80, 120}) {
      packing::LengthHistogram histogram{std::vector<std::uint64_t>(longest + 1, 3)};
      histogram.counts[0] = 0;
      const std::vector<std::string> lines = lines_of(draw_histogram(histogram, width, 5));
      ASSERT_EQ(lines.size(), 7u);
      for (const std::string& line : lines) {
        EXPECT_LE(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }), width);
      }
      EXPECT_THAT(lines.back(), testing::EndsWith(std::to_string(longest)));
    }
  }
}

TEST(DrawHistogram, LabelsEachLengthOnce) {
  EXPECT_EQ(lines_of(draw_histogram({{0, 7}}, 28, 2)).back(), "                           1");
  EXPECT_EQ(lines_of(draw_histogram({{0, 7, 7}}, 28, 2)).back(), "        1                  2");
}

TEST(DrawHistogram, IsEmptyForNoSequences) {
  EXPECT_EQ(draw_histogram({{}}, 80, 5), "");
}

TEST(DrawCurve, FallsFromTheTopToTheBottom) {
  const std::vector<std::string> lines = lines_of(draw_curve({{1, 8}, {500, 4}, {1000, 4}}, 24, 2));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "     8 ┤⠉⠑⠢⢄⡀");
  EXPECT_EQ(lines[1], "     4 ┤    ⠈⠑⠢⢄⣀⣀⣀⣀⣀⣀⣀⣀");
  EXPECT_EQ(lines[2], "       └────────────────");
  EXPECT_EQ(lines[3], "        1           1.0k");
}

TEST(DrawCurve, KeepsToItsWidthForAnyNumberOfPoints) {
  for (const int num_points : {1, 2, 3, 1000}) {
    std::vector<CurvePoint> points;
    for (int i = 0; i < num_points; ++i)
      points.push_back({static_cast<double>(i + 1), 5.0 + static_cast<double>(i * 7 % 13)});
    for (const int width : {24, 79, 200}) {
      const std::vector<std::string> lines = lines_of(draw_curve(points, width, 6));
      ASSERT_EQ(lines.size(), 8u);
      for (const std::string& line : lines) {
        EXPECT_LE(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }), width);
      }
    }
  }
  EXPECT_EQ(draw_curve({}, 80, 6), "");
}

TEST(DrawCurve, DrawsAConstantAsALine) {
  const std::vector<std::string> lines = lines_of(draw_curve({{1, 3}, {2, 3}}, 24, 3));
  EXPECT_EQ(lines[0], "     3 ┤⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉");
  EXPECT_EQ(lines[2], "     3 ┤");
}

}  // namespace
}  // namespace plenum::cli

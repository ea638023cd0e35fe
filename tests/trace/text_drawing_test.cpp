#include "plenum/trace/text_drawing.h"

#include <regex>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/trace/printable.h"

#include "tests/trace/sample_timeline.h"

namespace plenum::trace {
namespace {

using Color = TextDrawingOptions::Color;
using Tracks = TextDrawingOptions::Tracks;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string without_color(const std::string& text) {
  return std::regex_replace(text, std::regex("\x1b\\[[0-9;]*m"), "");
}

// "rank 0", a bar on each side and the share leave 40 columns: a quarter of a millisecond each.
constexpr std::size_t kWidth = 40 + 6 + 1 + 2 + 6;

TEST(TextDrawing, DrawsBlocksToScale) {
  const std::vector<std::string> lines = lines_of(draw_text(two_ranks(), {.width = kWidth}));
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_THAT(lines[0], StartsWith("two ranks: 2 ranks, 1 step, 10.00 ms"));
  EXPECT_EQ(lines[1], "rank 0 │F0──────F1──────····k0──────────────····│ 80.0%");
  EXPECT_EQ(lines[2], "rank 1 │············B0──────────────────i───────│ 70.0%");
  EXPECT_THAT(lines[3], HasSubstr("└┴───────────────────┴───────────────────┘"));
  EXPECT_THAT(lines[4], HasSubstr("0                   5"));
  EXPECT_THAT(lines[4], HasSubstr("ms"));
  EXPECT_EQ(lines[5], "F forward   B backward   k curvature   i inversion");
  EXPECT_EQ(lines[6], "· idle");
}

TEST(TextDrawing, HasRowsOfExactlyTheWidth) {
  for (const std::size_t width : {48, 55, 80, 133, 300}) {
    for (const Color color : {Color::No, Color::Yes}) {
      for (const Tracks tracks : {Tracks::Computation, Tracks::All}) {
        const std::string text = draw_text(two_ranks("a long title, in µs · and more and more and more"),
                                           {.width = width, .color = color, .tracks = tracks});
        std::vector<std::string> lines = lines_of(without_color(text));
        const std::size_t num_drawn = tracks == Tracks::All ? 7 : 5;
        ASSERT_GT(lines.size(), num_drawn);
        for (std::size_t i = 0; i < num_drawn; ++i) EXPECT_EQ(num_columns(lines[i]), width) << lines[i];
        for (std::size_t i = num_drawn; i < lines.size(); ++i)
          EXPECT_LE(num_columns(lines[i]), width) << lines[i];
      }
    }
  }
}

TEST(TextDrawing, SaysWhereATitleIsCut) {
  const std::string title(60, 'x');
  EXPECT_THAT(lines_of(draw_text(two_ranks(title), {.width = 50}))[0], std::string(49, 'x') + "…");
}

TEST(TextDrawing, SendsNoEscapesOfATitleToTheTerminal) {
  const std::string text = draw_text(two_ranks("a\x1b[31mb\nc"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_THAT(text, StartsWith("a\uFFFD[31mb\uFFFDc: 2 ranks"));
}

TEST(TextDrawing, ShowsOtherTracksWhenAsked) {
  const std::vector<std::string> lines =
      lines_of(draw_text(two_ranks(), {.width = kWidth, .tracks = Tracks::All}));
  ASSERT_GT(lines.size(), 4u);
  EXPECT_EQ(lines[2], "  pipe │········m0──····························│ 10.0%");
  EXPECT_EQ(lines[4], "  pipe │········································│  0.0%");
}

TEST(TextDrawing, ColorsOnlyWhenAsked) {
  EXPECT_EQ(draw_text(two_ranks()).find('\x1b'), std::string::npos);
  const std::vector<std::string> lines =
      lines_of(draw_text(two_ranks(), {.width = kWidth, .color = Color::Yes}));
  EXPECT_THAT(lines[1], HasSubstr("\x1b[0;48;5;"));
  for (const std::string& line : lines) {
    if (line.find('\x1b') != std::string::npos) {
      EXPECT_GT(line.rfind("\x1b[0m"), line.rfind("\x1b[0;")) << "a line ends in the terminal's own colour";
    }
  }
  EXPECT_EQ(without_color(lines[1]), "rank 0 │   0       1               0            │ 80.0%");
}

TEST(TextDrawing, DrawsColorsToHalfAColumn) {
  const Timeline timeline = SampleTimeline()
                                .track(0, "compute")
                                .span(0, 1.5, "F0.0", Category::Forward, 0)
                                .span(2.5, 40, "B0.0", Category::Backward, 0)
                                .build("", 0, 40, {0});
  const std::string row = lines_of(draw_text(timeline, {.width = kWidth, .color = Color::Yes}))[1];
  EXPECT_THAT(without_color(row), StartsWith("rank 0 │0▌▐  "));
}

TEST(TextDrawing, ShowsAPart) {
  const std::vector<std::string> lines =
      lines_of(draw_text(two_ranks(""), {.width = kWidth, .from_seconds = 0.004, .to_seconds = 0.008}));
  EXPECT_THAT(lines[0], HasSubstr("(from 4.000 ms to 8.000 ms)"));
  EXPECT_EQ(lines[1], "rank 0 │··········k0────────────────────────────│ 75.0%");
  EXPECT_EQ(lines[2], "rank 1 │B0──────────────────────────────────────│100.0%");
  EXPECT_THAT(lines[4], HasSubstr("4         5         6         7"));
}

TEST(TextDrawing, MarksStepsWhereThereAreSeveral) {
  const Timeline timeline = SampleTimeline()
                                .track(0, "compute")
                                .span(0, 10, "F0.0", Category::Forward, 0, 0)
                                .span(20, 30, "F0.0", Category::Forward, 0, 1)
                                .build("", 0, 40, {0, 20});
  const std::vector<std::string> lines = lines_of(draw_text(timeline, {.width = kWidth}));
  EXPECT_THAT(lines[1], StartsWith("        ▏step 0             ▏step 1"));
}

TEST(TextDrawing, CountsRanksThatDoNotFit) {
  SampleTimeline sample;
  for (std::uint32_t rank = 0; rank < 1024; ++rank) {
    sample.track(rank, "compute").span(0, 1, "F0.0", Category::Forward, 0);
  }
  const std::string text = draw_text(sample.build("", 0, 1, {0}), {.width = 80, .most_processes = 10});
  const std::vector<std::string> lines = lines_of(text);
  EXPECT_EQ(lines.size(), 1u + 10 + 1 + 3);
  EXPECT_THAT(text, HasSubstr("rank 9    │F0"));
  EXPECT_THAT(text, HasSubstr("… 1014 more ranks"));
}

TEST(TextDrawing, TakesAnEmptyTimeline) {
  EXPECT_THAT(draw_text({}), StartsWith("0 ranks, 0 steps"));
}

TEST(TextDrawing, ShowsWhatTakesMostOfAColumn) {
  SampleTimeline sample;
  sample.track(0, "compute");
  for (int i = 0; i < 400; ++i) {
    // In each tenth of a column: 60 % curvature, 20 % inversion; by itself neither span is the longest.
    sample.span(i, i + 0.3, "KA", Category::Curvature, 0);
    sample.span(i + 0.3, i + 0.6, "KB", Category::Curvature, 0);
    sample.span(i + 0.6, i + 0.95, "KI", Category::Inversion);
  }
  const std::string row = lines_of(draw_text(sample.build("", 0, 400, {0}), {.width = kWidth}))[1];
  EXPECT_THAT(row, HasSubstr("│" + std::string(40, 'k') + "│ 95.0%"));
}

}  // namespace
}  // namespace plenum::trace

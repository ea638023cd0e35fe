#include "plenum/trace/svg_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/trace/svg_text.h"

#include "tests/trace/sample_timeline.h"
#include "tests/trace/xml_reader.h"

namespace plenum::trace {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t number = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
  return number;
}

TEST(SvgDrawing, IsWellFormedAndEscaped) {
  const std::string title = "a <b> & \"c\" 'd'";
  const std::string svg = draw_svg(two_ranks(title));
  const XmlReader xml(svg);
  EXPECT_EQ(xml.error(), "");
  EXPECT_THAT(xml.text(), HasSubstr(title));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
}

TEST(SvgDrawing, StaysWellFormedWithControlCharactersAndBrokenText) {
  const std::string svg = draw_svg(two_ranks("x\x01\xff\ny"));
  EXPECT_EQ(XmlReader(svg).error(), "");
  EXPECT_THAT(svg, HasSubstr("x\uFFFD\uFFFD\uFFFDy"));
}

TEST(SvgDrawing, HasABlockWithATooltipForEverySpanThatTakesTime) {
  const std::string svg = draw_svg(two_ranks());
  EXPECT_EQ(count(svg, "<title>"), 1u + 6) << "the page's own and one for every block";
  EXPECT_THAT(
      svg, HasSubstr("<title>F0.1: forward, stage 0, micro-batch 1, step 0, 2.000 ms from 2.000 ms</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>KI1[1]/0: inversion, stage 1, step 0, 2.000 ms from 8.000 ms</title>"));
  EXPECT_THAT(svg, Not(HasSubstr("RF1.0")));
}

TEST(SvgDrawing, TellsFillersApartByHatches) {
  const std::string svg = draw_svg(two_ranks());
  for (const Category category : {Category::Curvature, Category::Inversion, Category::Precondition}) {
    EXPECT_THAT(svg, HasSubstr("<pattern id=\"plenum-" + std::string(class_of(category)) + "\""));
  }
  EXPECT_THAT(svg, Not(HasSubstr("<pattern id=\"plenum-" + std::string(class_of(Category::Forward)) + "\"")));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
}

TEST(SvgDrawing, NamesOnlyWhatOccursInItsLegend) {
  const XmlReader xml(draw_svg(two_ranks()));
  for (const char* name : {"forward", "backward", "curvature", "inversion", "message"}) {
    EXPECT_THAT(xml.text(), HasSubstr(name));
  }
  EXPECT_THAT(xml.text(), Not(HasSubstr("precondition")));
}

TEST(SvgDrawing, LabelsRowsWithRankStageAndShare) {
  const XmlReader xml(draw_svg(two_ranks()));
  EXPECT_THAT(xml.text(), HasSubstr("rank 0 stage 0"));
  EXPECT_THAT(xml.text(), HasSubstr("80.0 %"));
  EXPECT_THAT(xml.text(), HasSubstr("2 ranks, 1 step of 10.00 ms, computing 75.0 % of the time"));
}

TEST(SvgDrawing, DrawsFlowsWhereTheyAreFew) {
  EXPECT_EQ(count(draw_svg(two_ranks()), "marker-end"), 1u);
  EXPECT_EQ(count(draw_svg(two_ranks(), {.most_arrows = 0}), "marker-end"), 0u);
  const std::string alone = draw_svg(two_ranks(), {.tracks = SvgDrawingOptions::Tracks::Computation});
  EXPECT_EQ(count(alone, "marker-end"), 0u);
  EXPECT_THAT(alone, Not(HasSubstr("SF0.0")));
}

TEST(SvgDrawing, BordersSteps) {
  const Timeline timeline = SampleTimeline()
                                .track(0, "compute")
                                .span(0, 10, "F0.0", Category::Forward, 0, 0)
                                .span(20, 30, "F0.0", Category::Forward, 0, 1)
                                .build("", 0, 40, {0, 20});
  EXPECT_EQ(count(draw_svg(timeline), "class=\"step\""), 2u);
  EXPECT_EQ(count(draw_svg(two_ranks()), "class=\"step\""), 0u);
}

TEST(SvgDrawing, ShowsAPart) {
  const XmlReader xml(draw_svg(two_ranks(), {.from_seconds = 0.004, .to_seconds = 0.008}));
  EXPECT_EQ(xml.error(), "");
  EXPECT_THAT(xml.text(), Not(HasSubstr("forward")));
  EXPECT_THAT(xml.text(), Not(HasSubstr("inversion")));
  EXPECT_THAT(xml.text(), HasSubstr("B1.0: backward"));
  EXPECT_THAT(xml.text(), HasSubstr("75.0 %"));
  EXPECT_THAT(xml.text(), HasSubstr("shown from 4.000 ms to 8.000 ms"));
}

TEST(SvgDrawing, GrowsWithItsStepsUnlessToldItsWidth) {
  SampleTimeline sample;
  sample.track(0, "compute");
  for (std::uint32_t step = 0; step < 6; ++step)
    sample.span(step, step + 0.5, "F0.0", Category::Forward, 0, step);
  const Timeline timeline = sample.build("", 0, 6, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(draw_svg(timeline), HasSubstr("width=\"1800\""));
  EXPECT_THAT(draw_svg(timeline, {.to_seconds = 2}), HasSubstr("width=\"1200\""));
  EXPECT_THAT(draw_svg(timeline, {.width = 700}), HasSubstr("width=\"700\""));
}

TEST(SvgDrawing, JoinsBlocksTooNarrowToBeSeen) {
  SampleTimeline sample;
  sample.track(0, "compute");
  constexpr int kNumSpans = 20000;
  for (int i = 0; i < kNumSpans; ++i) {
    sample.span(i, i + 1, "KA", i < kNumSpans / 2 ? Category::Curvature : Category::Inversion, 0);
  }
  const std::string svg = draw_svg(sample.build("", 0, kNumSpans, {0}));
  EXPECT_EQ(XmlReader(svg).error(), "");
  EXPECT_EQ(count(svg, "10000 actions"), 2u);
}

TEST(SvgDrawing, KeepsNarrowBlocksApartThatLieApart) {
  SampleTimeline sample;
  sample.track(0, "compute");
  for (int i = 0; i < 100; ++i) sample.span(i, i + 0.1, "F", Category::Forward, 0);
  EXPECT_EQ(count(draw_svg(sample.build("", 0, 100, {0})), "<title>F: "), 100u);
}

TEST(SvgDrawing, CountsRanksThatDoNotFit) {
  SampleTimeline sample;
  for (std::uint32_t rank = 0; rank < 100; ++rank) {
    sample.track(rank, "compute").span(0, 1, "F0.0", Category::Forward, 0);
  }
  const XmlReader xml(draw_svg(sample.build("", 0, 1, {0})));
  EXPECT_EQ(xml.error(), "");
  EXPECT_THAT(xml.text(), HasSubstr("36 more ranks are not drawn"));
  EXPECT_THAT(xml.text(), Not(HasSubstr("rank 64")));
}

TEST(SvgDrawing, TakesAnEmptyTimeline) {
  EXPECT_EQ(XmlReader(draw_svg({})).error(), "");
}

TEST(StagesText, NamesFewAndRanges) {
  EXPECT_EQ(stages_text({}), "");
  EXPECT_EQ(stages_text({2}), "stage 2");
  EXPECT_EQ(stages_text({0, 3}), "stages 0, 3");
  EXPECT_EQ(stages_text({0, 1, 2, 3}), "stages 0-3");
  EXPECT_EQ(stages_text({0, 4, 8, 12, 16}), "stages 0, 4, 8, 12, …");
}

}  // namespace
}  // namespace plenum::trace

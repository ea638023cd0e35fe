#include "plenum/trace/overlay.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "tests/trace/sample_timeline.h"
#include "tests/trace/xml_reader.h"

namespace plenum::trace {
namespace {

using testing::HasSubstr;

/// As two_ranks(), on another clock, with the second forward 1 ms longer and all that follows it later.
Timeline measured_ranks() {
  return SampleTimeline()
      .track(0, "compute")
      .span(7.000, 7.002, "F0.0", Category::Forward, 0)
      .span(7.002, 7.005, "F0.1", Category::Forward, 1)
      .span(7.006, 7.010, "KA0.0[0]/0", Category::Curvature, 0)
      .track(0, "pipe")
      .span(7.002, 7.007, "SF0.0", Category::Message, 0)
      .track(1, "compute")
      .span(7.007, 7.0115, "B1.0", Category::Backward, 0)
      .span(7.0115, 7.0135, "KI1[1]/0", Category::Inversion)
      .track(1, "pipe")
      .span(7.007, 7.007, "RF1.0", Category::Message, 0)
      .build("", 7.0, 7.0135, {7.0});
}

const CategoryError& of(const Overlay& overlay, Category category) {
  return *std::find_if(overlay.categories.begin(), overlay.categories.end(),
                       [category](const CategoryError& error) { return error.category == category; });
}

TEST(Overlay, OfATimelineOverItselfHasNoErrors) {
  const Timeline timeline = two_ranks();
  const Overlay overlay = lay_over(timeline, timeline);
  ASSERT_EQ(overlay.errors.size(), timeline.spans.size());
  for (const SpanError& error : overlay.errors) {
    EXPECT_EQ(error.start_seconds, 0);
    EXPECT_EQ(error.duration_seconds, 0);
  }
  for (const CategoryError& category : overlay.categories) EXPECT_EQ(category.relative_error, 0);
  EXPECT_EQ(overlay.predicted_step_seconds, overlay.measured_step_seconds);
}

TEST(Overlay, DoesNotCountTheDrainOfTheLastStepAsPartOfAStep) {
  // Two steps, the second begins after 4 ms and drains for 6.
  Timeline timeline = two_ranks();
  timeline.step_begin_seconds = {5.0, 5.004};
  EXPECT_NEAR(mean_step_seconds(timeline), 4e-3, 1e-12);
  EXPECT_NEAR(lay_over(timeline, timeline).measured_step_seconds, 4e-3, 1e-12);
  timeline.step_seconds = 4.5e-3;
  EXPECT_EQ(mean_step_seconds(timeline), 4.5e-3);
}

TEST(Overlay, GivesTheErrorOfEveryAction) {
  const Timeline predicted = two_ranks();
  const Timeline measured = measured_ranks();
  const Overlay overlay = lay_over(predicted, measured);
  const double start_ms[] = {0, 0, 1, 0, 4, 3.5, 4};
  const double duration_ms[] = {0, 1, 0, 4, -0.5, 0, 0};
  for (std::size_t i = 0; i < overlay.errors.size(); ++i) {
    EXPECT_NEAR(overlay.errors[i].start_seconds, start_ms[i] * 1e-3, 1e-12) << i;
    EXPECT_NEAR(overlay.errors[i].duration_seconds, duration_ms[i] * 1e-3, 1e-12) << i;
  }
}

TEST(Overlay, SumsUpByCategory) {
  const Timeline predicted = two_ranks();
  const Timeline measured = measured_ranks();
  const Overlay overlay = lay_over(predicted, measured);
  ASSERT_EQ(overlay.categories.size(), 5u);
  const CategoryError& forward = of(overlay, Category::Forward);
  EXPECT_EQ(forward.num_spans, 2u);
  EXPECT_NEAR(forward.predicted_seconds, 0.004, 1e-12);
  EXPECT_NEAR(forward.measured_seconds, 0.005, 1e-12);
  EXPECT_NEAR(forward.mean_error_seconds, 0.0005, 1e-12);
  EXPECT_NEAR(forward.relative_error, 0.2, 1e-9);
  EXPECT_EQ(forward.worst_span, 1u);
  const CategoryError& backward = of(overlay, Category::Backward);
  EXPECT_NEAR(backward.relative_error, 0.5 / 4.5, 1e-9);
  EXPECT_NEAR(backward.mean_start_error_seconds, 0.004, 1e-12);
  EXPECT_NEAR(overlay.predicted_step_seconds, 0.010, 1e-12);
  EXPECT_NEAR(overlay.measured_step_seconds, 0.0135, 1e-12);
}

TEST(Overlay, NamesTheWorstActionOfThoseThatDoNotWait) {
  const Timeline predicted = two_ranks();
  const Timeline measured = measured_ranks();
  const Overlay overlay = lay_over(predicted, measured);
  EXPECT_EQ(overlay.worst_span, 1u) << "not the message, which took longer because it waited";
  const std::string text = overlay_text(overlay);
  EXPECT_THAT(text, HasSubstr("step 10.00 ms predicted, 13.50 ms measured (+35.0 %)"));
  EXPECT_THAT(
      text,
      HasSubstr("differs most: F0.1 on rank 0, step 0: 2.000 ms predicted, 3.000 ms measured (+50.0 %)"));
}

TEST(Overlay, CountsStartsFromTheStep) {
  const auto two_steps = [](double second_begin) {
    return SampleTimeline()
        .track(0, "compute")
        .span(0, 1, "F0.0", Category::Forward, 0, 0)
        .span(second_begin, second_begin + 1, "F0.0", Category::Forward, 0, 1)
        .build("", 0, second_begin + 1, {0, second_begin});
  };
  const Timeline predicted = two_steps(2);
  const Timeline measured = two_steps(3);
  EXPECT_EQ(lay_over(predicted, measured).errors[1].start_seconds, 0);
}

TEST(Overlay, RefusesTimelinesOfOtherSchedules) {
  const Timeline predicted = two_ranks();
  const auto message_of = [&predicted](const Timeline& measured) -> std::string {
    try {
      lay_over(predicted, measured);
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string begin = "the timelines are not of the same schedule: ";
  Timeline other = measured_ranks();
  other.labels[4] = "B1.1";
  EXPECT_EQ(message_of(other), begin + "B1.0 on rank 1, step 0 predicted, B1.1 on rank 1, step 0 measured");
  other = measured_ranks();
  other.spans.pop_back();
  EXPECT_EQ(message_of(other), begin + "7 actions predicted, 6 measured");
  other = measured_ranks();
  other.tracks[1].name = "data";
  EXPECT_EQ(message_of(other),
            begin + "track 1 is rank 0, pipe in the prediction and rank 0, data in the measurement");
  other.tracks.pop_back();
  EXPECT_EQ(message_of(other), begin + "4 tracks predicted, 3 measured");
}

TEST(OverlayText, IsAligned) {
  const Timeline predicted = two_ranks();
  const Timeline measured = measured_ranks();
  const std::string text = overlay_text(lay_over(predicted, measured));
  EXPECT_THAT(text, HasSubstr("forward                2     4.000 ms     5.000 ms     500.0 µs     20.0%"));
}

TEST(OverlaySvg, ShowsPredictionAboveMeasurement) {
  const Timeline predicted = two_ranks();
  const Timeline measured = measured_ranks();
  const XmlReader xml(overlay_svg(lay_over(predicted, measured), "over & under"));
  EXPECT_EQ(xml.error(), "");
  EXPECT_THAT(xml.text(), HasSubstr("over & under"));
  const std::size_t first = xml.text().find("rank 0 predicted");
  const std::size_t second = xml.text().find("measured", first);
  EXPECT_LT(first, second);
  EXPECT_LT(second, xml.text().find("rank 1 predicted"));
}

}  // namespace
}  // namespace plenum::trace

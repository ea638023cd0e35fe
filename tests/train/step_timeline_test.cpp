#include "plenum/train/step_timeline.h"

#include <gmock/gmock.h>

#include "plenum/trace/process_rows.h"

namespace plenum::train {
namespace {

using trace::Span;
using trace::Timeline;

/// Two ranks with two tracks each, a flow from the one to the other.
Timeline two_ranks() {
  Timeline timeline{.title = "",
                    .begin_seconds = 1,
                    .end_seconds = 4,
                    .tracks = {{0, "compute"}, {0, "data"}, {1, "compute"}, {1, "data"}},
                    .labels = {"a", "b", "c", "d"},
                    .spans = {},
                    .flows = {{1, 3}},
                    .step_begin_seconds = {1},
                    .step_seconds = {}};
  for (std::uint32_t track = 0; track < 4; ++track) {
    timeline.spans.push_back({.start_seconds = 1.0 + track / 2.0,
                              .end_seconds = 2,
                              .track = track,
                              .label = track,
                              .micro_batch = static_cast<std::int32_t>(track % 2)});
  }
  return timeline;
}

TEST(RemoveSpans, KeepsTheRestWithItsFlows) {
  Timeline timeline = two_ranks();
  remove_spans(timeline, [](const Span& span) { return span.label == 0; });
  ASSERT_EQ(timeline.spans.size(), 3U);
  ASSERT_EQ(timeline.flows.size(), 1U);
  EXPECT_EQ(timeline.spans[timeline.flows[0].from].label, 1U);
  EXPECT_EQ(timeline.spans[timeline.flows[0].to].label, 3U);
  remove_spans(timeline, [](const Span& span) { return span.label == 3; });
  EXPECT_TRUE(timeline.flows.empty());
}

TEST(KeepStep, LeavesOneStepOfACycle) {
  Timeline timeline = two_ranks();
  timeline.step_begin_seconds = {1, 1.5};
  timeline.spans[1].step = timeline.spans[3].step = 1;
  timeline.spans[3].end_seconds = 3;
  keep_step(timeline, 1);
  ASSERT_EQ(timeline.spans.size(), 2U);
  EXPECT_EQ(timeline.spans[0].label, 1U);
  EXPECT_EQ(timeline.spans[1].step, 0U);
  EXPECT_EQ(timeline.begin_seconds, 1.5);
  EXPECT_EQ(timeline.end_seconds, 3);
  EXPECT_EQ(trace::mean_step_seconds(timeline), 1.5);
}

TEST(AddWaitForData, LiesOnATrackOfTheFirstRankBeforeAllElse) {
  Timeline timeline = two_ranks();
  timeline.explanations = timeline.labels;
  add_wait_for_data(timeline, 0.25);
  EXPECT_EQ(timeline.explanations.size(), timeline.labels.size());
  EXPECT_EQ(timeline.begin_seconds, 0.75);
  ASSERT_EQ(timeline.tracks.size(), 5U);
  EXPECT_EQ(timeline.tracks[2].name, "loader");
  EXPECT_EQ(timeline.tracks[2].process, 0U);
  const std::vector<trace::ProcessRow> rows = trace::process_rows(timeline);
  ASSERT_EQ(rows.size(), 2U);
  ASSERT_EQ(rows[0].tracks.size(), 3U);
  ASSERT_EQ(rows[0].tracks[2].spans.size(), 1U);
  const Span& wait = rows[0].tracks[2].spans[0];
  EXPECT_EQ(timeline.labels[wait.label], "waiting for data");
  EXPECT_EQ(wait.start_seconds, 0.75);
  EXPECT_EQ(wait.end_seconds, 1);
  ASSERT_EQ(rows[1].tracks.size(), 2U);
  EXPECT_EQ(rows[1].tracks[0].spans[0].label, 2U);
  EXPECT_EQ(timeline.spans[timeline.flows[0].to].label, 3U);
}

}  // namespace
}  // namespace plenum::train

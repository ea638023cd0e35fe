#include "plenum/trace/timeline.h"

#include <gtest/gtest.h>

namespace plenum::trace {
namespace {

Timeline three_steps() {
  Timeline timeline{.end_seconds = 3,
                    .tracks = {{0, "compute"}, {1, "compute"}},
                    .labels = {"a"},
                    .step_begin_seconds = {0, 1, 2}};
  timeline.spans = {{.start_seconds = 0, .end_seconds = 0.5},
                    {.start_seconds = 1.5, .end_seconds = 2.5, .step = 1},
                    {.start_seconds = 2.5, .end_seconds = 3, .step = 2},
                    {.start_seconds = 0.5, .end_seconds = 1, .track = 1},
                    {.start_seconds = 2, .end_seconds = 3, .track = 1, .step = 2}};
  timeline.flows = {{0, 3}, {1, 4}};
  return timeline;
}

TEST(FirstSteps, EndWhereTheNextStepBegins) {
  const Timeline part = first_steps(three_steps(), 2);
  EXPECT_EQ(part.end_seconds, 2);
  EXPECT_EQ(part.step_begin_seconds, (std::vector<double>{0, 1}));
  ASSERT_EQ(part.spans.size(), 3u);
  EXPECT_EQ(part.spans[1].end_seconds, 2) << "a span that reaches over the end is cut there";
  EXPECT_EQ(part.spans[2].track, 1u);
  ASSERT_EQ(part.flows.size(), 1u) << "a flow to what is left out is left out";
  EXPECT_EQ(part.flows[0].to, 2u);
}

TEST(FirstSteps, AreAllWhereThereAreNoMore) {
  EXPECT_EQ(first_steps(three_steps(), 3).spans.size(), 5u);
}

}  // namespace
}  // namespace plenum::trace

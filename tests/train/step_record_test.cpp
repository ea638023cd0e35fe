#include "plenum/train/step_record.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace plenum::train {
namespace {

using nlohmann::json;

/// A rank for each number, with a track that has as many spans.
trace::Timeline timeline_of(const std::vector<int>& spans_of_ranks) {
  trace::Timeline timeline{.title = "made",
                           .begin_seconds = 1,
                           .end_seconds = 3,
                           .tracks = {},
                           .labels = {"forward"},
                           .spans = {},
                           .flows = {},
                           .step_begin_seconds = {1},
                           .step_seconds = {}};
  for (std::uint32_t rank = 0; rank < spans_of_ranks.size(); ++rank) {
    timeline.tracks.push_back({rank, "compute"});
    for (int i = 0; i < spans_of_ranks[rank]; ++i)
      timeline.spans.push_back({.start_seconds = 1.25,
                                .end_seconds = 1.5,
                                .track = rank,
                                .label = 0,
                                .category = trace::Category::Forward,
                                .micro_batch = i});
  }
  return timeline;
}

TEST(StepRecord, CountsTimesFromTheBeginningOfTheStep) {
  const trace::Timeline timeline = timeline_of({1, 2});
  const json object = json::parse(step_record_json(
      {.step = 8, .schedule = "single", .predicted = timeline, .measured = timeline, .breakdown = {}}));
  EXPECT_EQ(object["step"], 8);
  EXPECT_EQ(object["ranks"], 2);
  EXPECT_EQ(object["measured"]["length_seconds"], 2);
  EXPECT_EQ(object["measured"]["spans"][2], json({1, 0.25, 0.5, "forward", "forward", 1}));
}

TEST(StepRecord, KeepsTheFirstRanksOfAStepWithVeryManyActions) {
  const trace::Timeline timeline = timeline_of({9000, 9000, 9000});
  const json object = json::parse(step_record_json(
      {.step = 8, .schedule = "single", .predicted = timeline, .measured = timeline, .breakdown = {}}));
  EXPECT_EQ(object["ranks"], 3);
  EXPECT_EQ(object["tracks"].size(), 2U);
  EXPECT_EQ(object["predicted"]["spans"].size(), 18'000U);
}

TEST(StepRecord, KeepsOneRankHoweverManyActionsItHas) {
  const trace::Timeline timeline = timeline_of({30'000, 10});
  const json object = json::parse(step_record_json(
      {.step = 8, .schedule = "single", .predicted = timeline, .measured = timeline, .breakdown = {}}));
  EXPECT_EQ(object["tracks"].size(), 1U);
}

}  // namespace
}  // namespace plenum::train

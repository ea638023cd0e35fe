#include "plenum/schedule/simulate/timeline_of.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "plenum/schedule/core/action_text.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/simulate/simulate.h"

#include "tests/support/constant_costs.h"

namespace plenum::schedule {
namespace {

using trace::Category;
using trace::Timeline;

const test::ConstantCosts kCosts(
    {{ActionType::Forward, 1}, {ActionType::Backward, 2}, {ActionType::Update, 1}}, 0.25);

Schedule small_pipeline() {
  return generator_named("1f1b").generate(
      {.depth = 3, .num_micro_batches = 4, .num_replicas = 2, .stage_layers = {2}, .num_buckets = 2});
}

Timeline simulated(const Schedule& schedule) {
  return timeline_of(schedule, simulate(schedule, kCosts).replay.times, "a test");
}

/// Two steps of the same actions.
Schedule twice(const Schedule& once) {
  Schedule schedule = once;
  for (RankProgram& rank : schedule.ranks) {
    for (LaneProgram& lane : rank.lanes) {
      const std::vector<Action> actions(lane.actions().begin(), lane.actions().end());
      for (const Action& action : actions) lane.append(action);
      lane.end_step();
    }
  }
  return schedule;
}

TEST(TimelineOf, HasATrackForEveryLaneWithActions) {
  const Schedule schedule = small_pipeline();
  const Timeline timeline = simulated(schedule);
  EXPECT_EQ(timeline.title, "a test");
  ASSERT_EQ(timeline.tracks.size(), 24u);
  for (std::size_t i = 0; i < timeline.tracks.size(); ++i) {
    EXPECT_EQ(timeline.tracks[i].process, i / 4);
    EXPECT_EQ(timeline.tracks[i].name, (std::array{"compute", "data", "pipe out", "pipe in"})[i % 4]);
  }
}

TEST(TimelineOf, LabelsActionsByCodesOrByWords) {
  const Schedule schedule = small_pipeline();
  const std::vector<RankTimes> times = simulate(schedule, kCosts).replay.times;
  const StageLayers layers(schedule.problem);
  const Action action = schedule.ranks[0].lane(Lane::Compute).actions().front();
  EXPECT_EQ(timeline_of(schedule, times, "").labels.front(), action_text(action, layers));
  EXPECT_EQ(timeline_of(schedule, times, "", ActionLabels::Words).labels.front(),
            "forward, stage 0, micro-batch 0, layers 0 to 1");
}

/// The positions of a lane's actions in the order of its tracks.
std::vector<std::size_t> sends_first(const LaneProgram& program) {
  std::vector<std::size_t> positions(program.actions().size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  std::stable_partition(positions.begin(), positions.end(),
                        [&](std::size_t i) { return is_send(program.actions()[i].type); });
  return positions;
}

TEST(TimelineOf, HasEveryActionInOrderWithItsTimes) {
  const Schedule schedule = twice(small_pipeline());
  const ReplayResult replay = simulate(schedule, kCosts).replay;
  const Timeline timeline = timeline_of(schedule, replay.times, "");
  const StageLayers layers(schedule.problem);
  ASSERT_EQ(timeline.spans.size(), schedule.num_actions());
  std::size_t index = 0;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      const LaneProgram& program = schedule.ranks[rank].lanes[lane];
      for (const std::size_t position : sends_first(program)) {
        const Action& action = program.actions()[position];
        const trace::Span& span = timeline.spans[index++];
        EXPECT_EQ(timeline.tracks[span.track].process, rank);
        EXPECT_EQ(timeline.labels[span.label], action_text(action, layers));
        EXPECT_EQ(span.start_seconds, replay.times[rank][lane][position].start);
        EXPECT_EQ(span.end_seconds, replay.times[rank][lane][position].end);
        EXPECT_EQ(span.category, category_of(action.type));
        EXPECT_EQ(span.stage, action.stage.value);
        EXPECT_EQ(span.micro_batch, static_cast<std::int32_t>(action.micro_batch.value));
        EXPECT_EQ(span.step, position < program.step_begin(1) ? 0u : 1u);
      }
    }
  }
}

TEST(TimelineOf, NamesEachLabelOnce) {
  const Timeline timeline = simulated(small_pipeline());
  const std::set<std::string> different(timeline.labels.begin(), timeline.labels.end());
  EXPECT_EQ(different.size(), timeline.labels.size());
}

TEST(TimelineOf, LeadsFromEverySendToItsReceive) {
  const Schedule schedule = twice(small_pipeline());
  const Timeline timeline = simulated(schedule);
  // Two borders between stages, both directions, four micro-batches, two replicas, two steps.
  ASSERT_EQ(timeline.flows.size(), 2u * 2 * 4 * 2 * 2);
  std::set<std::uint32_t> ends;
  for (const trace::Flow& flow : timeline.flows) {
    const trace::Span& from = timeline.spans[flow.from];
    const trace::Span& to = timeline.spans[flow.to];
    EXPECT_EQ(timeline.labels[from.label].front(), 'S');
    EXPECT_EQ(timeline.labels[to.label].front(), 'R');
    EXPECT_EQ(from.micro_batch, to.micro_batch);
    EXPECT_EQ(from.step, to.step);
    EXPECT_EQ(std::abs(from.stage - to.stage), 1);
    EXPECT_EQ(from.category, Category::Message);
    EXPECT_EQ(to.start_seconds, from.start_seconds);
    EXPECT_EQ(to.end_seconds, from.start_seconds + 0.25);
    EXPECT_EQ(to.end_seconds, from.end_seconds);
    EXPECT_TRUE(ends.insert(flow.from).second && ends.insert(flow.to).second);
  }
}

TEST(TimelineOf, HasDisjointSpansOnATrackWhereALaneReceivesWhileItSends) {
  const test::ConstantCosts costs({{ActionType::Forward, 1},
                                   {ActionType::Backward, 2},
                                   {ActionType::SendActivation, 1.5},
                                   {ActionType::SendGradient, 1.5}},
                                  0.25);
  const Schedule schedule = small_pipeline();
  const Timeline timeline = timeline_of(schedule, simulate(schedule, costs).replay.times, "");
  for (std::size_t i = 1; i < timeline.spans.size(); ++i) {
    const trace::Span& before = timeline.spans[i - 1];
    const trace::Span& span = timeline.spans[i];
    EXPECT_LE(before.track, span.track);
    if (before.track == span.track) {
      EXPECT_LE(before.end_seconds, span.start_seconds);
    }
  }
}

TEST(TimelineOf, DrawsAMessageOnItsWay) {
  const Timeline timeline = simulated(small_pipeline());
  double longest = 0;
  for (const trace::Flow& flow : timeline.flows) {
    const trace::Span& receive = timeline.spans[flow.to];
    longest = std::max(longest, receive.end_seconds - receive.start_seconds);
  }
  EXPECT_NEAR(longest, 0.25, 1e-12);
}

TEST(TimelineOf, KnowsWhenStepsBegin) {
  const Schedule schedule = twice(small_pipeline());
  const Timeline timeline = simulated(schedule);
  ASSERT_EQ(timeline.step_begin_seconds.size(), 2u);
  EXPECT_EQ(timeline.begin_seconds, timeline.step_begin_seconds[0]);
  EXPECT_NEAR(timeline.end_seconds - timeline.begin_seconds, 2 * simulate(schedule, kCosts).step_seconds,
              1e-9);
  for (const trace::Span& span : timeline.spans) {
    EXPECT_GE(span.start_seconds, timeline.step_begin_seconds[span.step]);
    EXPECT_LE(span.end_seconds, timeline.end_seconds);
  }
}

TEST(TimelineOf, DrawsFillersApart) {
  EXPECT_EQ(category_of(ActionType::CurvatureA), Category::Curvature);
  EXPECT_EQ(category_of(ActionType::AccumulateFactor), Category::Curvature);
  EXPECT_EQ(category_of(ActionType::Invert), Category::Inversion);
  EXPECT_EQ(category_of(ActionType::InverseRoot), Category::Inversion);
  EXPECT_EQ(category_of(ActionType::Precondition), Category::Precondition);
  EXPECT_EQ(category_of(ActionType::ReduceCurvature), Category::Collective);
  EXPECT_EQ(category_of(ActionType::Agree), Category::Collective);
  EXPECT_EQ(category_of(ActionType::ReceiveGradient), Category::Message);
}

}  // namespace
}  // namespace plenum::schedule

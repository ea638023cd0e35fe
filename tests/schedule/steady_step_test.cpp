#include "plenum/schedule/fill/steady_step.h"

#include <cmath>

#include <gtest/gtest.h>

#include "plenum/schedule/fill/data_lane.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/generate/generator.h"

#include "tests/schedule/pipeline_figures.h"
#include "tests/support/constant_costs.h"

namespace plenum::schedule {
namespace {

std::vector<double> gap_lengths(const SteadyStep& step, Rank rank) {
  std::vector<double> lengths;
  for (const Gap& gap : step.gaps(rank)) {
    if (gap.end - gap.begin > 1e-9) lengths.push_back(gap.end - gap.begin);
  }
  return lengths;
}

test::ConstantCosts unit_costs() {
  return test::ConstantCosts(
      {{ActionType::Forward, 1}, {ActionType::Backward, 2}, {ActionType::Precondition, 0.25}});
}

TEST(SteadyStep, TakesAsLongAsThePipelineAndItsPreconditioning) {
  const test::ConstantCosts costs = unit_costs();
  for (const std::string_view name : {"gpipe", "1f1b"}) {
    const SteadyStep step(
        generator_named(name).generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}}),
        KfacFiller(6), costs);
    EXPECT_DOUBLE_EQ(step.seconds(), 3 * (3 * 7 + 0.25));
    for (std::uint32_t rank = 0; rank < 4; ++rank) EXPECT_DOUBLE_EQ(step.bubble_seconds({rank}), 3 * 3 * 3);
  }
}

TEST(SteadyStep, GathersTheGapsOfTheFirstAndLastStageIntoOne) {
  const test::ConstantCosts costs = unit_costs();
  const SteadyStep step(
      generator_named("1f1b").generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}}),
      KfacFiller(6), costs);
  for (const std::uint32_t rank : {0, 3}) {
    const std::vector<double> lengths = gap_lengths(step, {rank});
    ASSERT_EQ(lengths.size(), 1) << rank;
    EXPECT_NEAR(lengths.front(), 27, 1e-9);
  }
}

/// When the lane has come to its action `i`. Messages leave one after another, but nothing else waits for
/// them.
double lane_free(const SteadyStep& step, Rank rank, Lane lane, std::size_t i) {
  const std::span<const Action> actions = step.schedule().ranks[rank.index()].lane(lane).actions();
  const LaneTimes& times = step.times(rank, lane);
  const std::size_t count = actions.size();
  for (std::size_t back = 1; back <= count; ++back) {
    const std::size_t before = (i + count - back) % count;
    if (is_send(actions[before].type) && !is_send(actions[i].type)) continue;
    return times[before].end - (before >= i ? step.seconds() : 0);
  }
  return -step.seconds();
}

/// Every action of the steady step starts after what it reads is there, its lane is free, and its message has
/// come.
TEST(SteadyStep, KeepsEveryTieWhenItGathersGaps) {
  const test::ConstantCosts costs({{ActionType::Forward, 1},
                                   {ActionType::Backward, 2},
                                   {ActionType::InputGradient, 0.9},
                                   {ActionType::WeightGradient, 1.1},
                                   {ActionType::SendActivation, 0.1},
                                   {ActionType::SendGradient, 0.1},
                                   {ActionType::ReduceGradient, 0.7},
                                   {ActionType::Agree, 0.2},
                                   {ActionType::Update, 0.3},
                                   {ActionType::Precondition, 0.25}},
                                  0.05);
  for (const std::string_view name : pipeline_names()) {
    SCOPED_TRACE(name);
    const SteadyStep step(generator_named(name).generate({.depth = 4,
                                                          .num_micro_batches = 8,
                                                          .num_replicas = 2,
                                                          .stage_layers = {2},
                                                          .has_tied_parameters = true}),
                          KfacFiller(2), costs);
    const Dataflow& dataflow = step.dataflow();
    std::vector<ValueRef> values;
    for (std::uint32_t rank = 0; rank < step.schedule().ranks.size(); ++rank) {
      for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
        const std::span<const Action> actions = step.schedule().ranks[rank].lanes[lane].actions();
        const LaneTimes& times = step.times({rank}, static_cast<Lane>(lane));
        for (std::size_t i = 0; i < actions.size(); ++i) {
          EXPECT_GE(times[i].start, lane_free(step, {rank}, static_cast<Lane>(lane), i) - 1e-9);
          dataflow.inputs({rank}, actions[i], values);
          for (const ValueRef& value : values) {
            const std::optional<double> made = step.made({rank}, value.index);
            if (!made) continue;
            EXPECT_GE(times[i].start, *made - value.age * step.seconds() - 1e-9);
          }
          if (!is_receive(actions[i].type)) continue;
          // Both ends of a message are one.
          const Action send = dataflow.counterpart(actions[i]);
          dataflow.outputs(dataflow.peer(actions[i]), send, values);
          EXPECT_EQ(times[i].end, *step.made(dataflow.peer(actions[i]), values.front().index));
          EXPECT_NEAR(times[i].end - times[i].start, costs.seconds(dataflow.peer(actions[i]), send) + 0.05,
                      1e-9);
        }
      }
    }
  }
}

TEST(DataLane, FindsTheFirstFreeTimeRoundTheCycle) {
  const test::ConstantCosts costs(
      {{ActionType::Forward, 1}, {ActionType::Backward, 2}, {ActionType::Agree, 1}});
  const SteadyStep step(
      generator_named("gpipe").generate({.depth = 2, .num_micro_batches = 1, .stage_layers = {1}}),
      KfacFiller(1), costs);
  ASSERT_DOUBLE_EQ(step.seconds(), 7);
  const ActionTime agree = step.times({0}, Lane::DataParallel).back();
  DataLane lane(step, {0}, 2);
  EXPECT_DOUBLE_EQ(lane.first_free(agree.start + 0.5, 0.5), agree.end);
  EXPECT_DOUBLE_EQ(lane.first_free(agree.end, 6), agree.end);
  // Longer than the time between two agreements: there is none.
  EXPECT_FALSE(std::isfinite(lane.first_free(agree.end, 6.5)));
  lane.occupy(agree.end + 14, 5);
  EXPECT_DOUBLE_EQ(lane.first_free(agree.end, 2), agree.end + 7);
  EXPECT_DOUBLE_EQ(lane.first_free(agree.end + 28, 1), agree.end + 33);
}

}  // namespace
}  // namespace plenum::schedule

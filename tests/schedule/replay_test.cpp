#include "plenum/schedule/simulate/replay.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/schedule/core/action_text.h"
#include "plenum/schedule/text/parse_schedule.h"

#include "tests/schedule/pipeline_figures.h"
#include "tests/support/constant_costs.h"

namespace plenum::schedule {
namespace {

/// Forward 1 on rank 0, 2 on rank 1 and so on; sends 0.5, on their way for 0.25; collectives 10.
class StaggeredCosts final : public CostModel {
 public:
  double seconds(Rank rank, const Action& action) const override {
    if (traits_of(action.type).is_collective) return 10;
    if (is_send(action.type)) return 0.5;
    return action.type == ActionType::Forward ? rank.value + 1 : 0;
  }
  double latency_seconds(Rank, Rank) const override { return 0.25; }
};

/// The schedule without the actions whose text is `word`, on one rank.
Schedule without(const Schedule& schedule, std::size_t rank, std::string_view word) {
  Schedule damaged = schedule;
  const StageLayers layers(schedule.problem);
  for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
    LaneProgram kept;
    for (const Action& action : schedule.ranks[rank].lanes[lane].actions()) {
      if (action_text(action, layers) != word) kept.append(action);
    }
    kept.end_step();
    damaged.ranks[rank].lanes[lane] = kept;
  }
  return damaged;
}

ActionTime time_of(const Schedule& schedule, const ReplayResult& result, std::size_t rank,
                   std::string_view word) {
  const StageLayers layers(schedule.problem);
  for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
    const std::span<const Action> actions = schedule.ranks[rank].lanes[lane].actions();
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (action_text(actions[i], layers) == word) return result.times[rank][lane][i];
    }
  }
  ADD_FAILURE() << "no " << word << " on rank " << rank;
  return {};
}

std::vector<std::string> blocked_words(const Schedule& schedule, const ReplayResult& result) {
  const Dataflow dataflow(schedule);
  std::vector<std::string> words;
  for (const BlockedAction& blocked : result.blocked) {
    const Action& action =
        schedule.ranks[blocked.rank.index()].lane(blocked.lane).actions()[blocked.position];
    words.push_back(std::to_string(blocked.rank.value) + " " + action_text(action, dataflow.layers()) +
                    (blocked.missing ? ": " + dataflow.describe(blocked.rank, blocked.missing->index) : ""));
  }
  return words;
}

ReplayResult run_once(const Schedule& schedule) {
  return replay(schedule, Dataflow(schedule), StaggeredCosts(), 1);
}

TEST(Replay, DeliversAMessageAfterItsTimeAndLatency) {
  const Schedule schedule = generate("gpipe", {.depth = 2, .num_micro_batches = 2, .stage_layers = {1}});
  const ReplayResult result = run_once(schedule);
  ASSERT_TRUE(result.blocked.empty());
  for (const auto& [rank, word] : {std::pair(0, "SF0.0"), {1, "RF1.0"}}) {
    EXPECT_EQ(time_of(schedule, result, rank, word).start, 1);
    EXPECT_EQ(time_of(schedule, result, rank, word).end, 1.75);
  }
  EXPECT_EQ(time_of(schedule, result, 1, "F1.0").start, 1.75);
  // The second message waits for nothing, its forward for the first one.
  EXPECT_EQ(time_of(schedule, result, 1, "RF1.1").end, 2.75);
  EXPECT_EQ(time_of(schedule, result, 1, "F1.1").start, 3.75);
}

TEST(Replay, HoldsBothLanesOfAMessageUntilItHasArrived) {
  const Schedule schedule = generate("gpipe", {.depth = 2, .num_micro_batches = 2, .stage_layers = {1}});
  class LongWay final : public CostModel {
   public:
    double seconds(Rank, const Action& action) const override {
      return action.type == ActionType::Forward ? 1 : 0;
    }
    double latency_seconds(Rank, Rank) const override { return 4; }
  };
  const ReplayResult result = replay(schedule, Dataflow(schedule), LongWay(), 1);
  EXPECT_EQ(time_of(schedule, result, 0, "SF0.0").end, 5);
  // Made in second 2, but the lanes are free from second 5 on.
  EXPECT_EQ(time_of(schedule, result, 0, "SF0.1").start, 5);
  EXPECT_EQ(time_of(schedule, result, 1, "RF1.1").start, 5);
  EXPECT_EQ(time_of(schedule, result, 1, "RF1.1").end, 9);
}

TEST(Replay, LetsASendWaitForItsReceiver) {
  // Rank 1 comes to its second receive only when its first gradient is sent.
  const Schedule schedule = parse_schedule(R"(plenum-schedule 1
layers 1 1
micro-batches 2
rank 0 holds 0
rank 1 holds 1
0 compute: F0.0 F0.1 B0.0 B0.1 NS0 U0
0 pipe: SF0.0 RB0.0 SF0.1 RB0.1
0 data: N
1 compute: F1.0 B1.0 F1.1 B1.1 NS1 U1
1 pipe: RF1.0 SB1.0 RF1.1 SB1.1
1 data: N
)",
                                           "test");
  const test::ConstantCosts costs({{ActionType::Forward, 1}, {ActionType::Backward, 2}});
  const ReplayResult result = replay(schedule, Dataflow(schedule), costs, 1);
  ASSERT_TRUE(result.blocked.empty());
  EXPECT_EQ(time_of(schedule, result, 0, "F0.1").end, 2);
  EXPECT_EQ(time_of(schedule, result, 1, "SB1.0").start, 4);
  EXPECT_EQ(time_of(schedule, result, 0, "SF0.1").start, 4);
}

TEST(Replay, BlocksASendWithoutItsReceiver) {
  const Schedule schedule =
      without(generate("gpipe", {.depth = 2, .num_micro_batches = 1, .stage_layers = {1}}), 1, "RF1.0");
  const ReplayResult result = run_once(schedule);
  EXPECT_THAT(blocked_words(schedule, result), testing::Contains("0 SF0.0"));
}

TEST(Replay, NeedsNoPipelineLanesWhereMessagesAreFree) {
  const Schedule schedule = generate("1f1b", {.depth = 4, .num_micro_batches = 6, .stage_layers = {1}});
  Schedule scrambled = schedule;
  for (RankProgram& rank : scrambled.ranks) {
    LaneProgram& lane = rank.lane(Lane::Pipeline);
    std::vector<Action> actions(lane.actions().rbegin(), lane.actions().rend());
    lane = {};
    for (const Action& action : actions) lane.append(action);
    lane.end_step();
  }
  const test::ConstantCosts costs({{ActionType::Forward, 1}, {ActionType::Backward, 2}});
  const ReplayResult ordered = replay(schedule, Dataflow(schedule), costs, 2);
  EXPECT_FALSE(replay(scrambled, Dataflow(scrambled), costs, 2).blocked.empty());
  const ReplayResult result = replay(scrambled, Dataflow(scrambled), costs, 2, MessageOrder::Free);
  EXPECT_TRUE(result.blocked.empty());
  EXPECT_EQ(result.end, ordered.end);
}

TEST(Replay, StartsACollectiveWhenTheLastOfItsGroupComes) {
  const Schedule schedule =
      generate("data-parallel", {.num_micro_batches = 1, .num_replicas = 3, .stage_layers = {1}});
  const ReplayResult result = run_once(schedule);
  ASSERT_TRUE(result.blocked.empty());
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(time_of(schedule, result, rank, "AR0").start, 3);
    EXPECT_EQ(time_of(schedule, result, rank, "AR0").end, 13);
    EXPECT_EQ(time_of(schedule, result, rank, "N").start, 13);
    EXPECT_EQ(time_of(schedule, result, rank, "U0").start, 23);
  }
  EXPECT_EQ(result.end, 23);
}

TEST(Replay, ReportsTheHeadOfEveryBlockedLaneAndWhatItLacks) {
  const Schedule schedule =
      without(generate("1f1b", {.depth = 2, .num_micro_batches = 1, .stage_layers = {1}}), 0, "SF0.0");
  EXPECT_EQ(blocked_words(schedule, run_once(schedule)),
            std::vector<std::string>({
                "0 B0.0: the output gradient of stage 0 for micro-batch 0",
                "0 N: the squares of the gradient of layer 0",
                "0 RB0.0",
                "1 F1.0: the input of stage 1 for micro-batch 0",
                "1 N: the squares of the gradient of layer 1",
                "1 RF1.0",
            }));
}

TEST(Replay, ReportsThoseWhoWaitInACollectiveThatOneNeverComesTo) {
  const Schedule schedule = without(
      generate("data-parallel", {.num_micro_batches = 1, .num_replicas = 2, .stage_layers = {1}}), 1, "AR0");
  EXPECT_EQ(blocked_words(schedule, run_once(schedule)), std::vector<std::string>({
                                                             "0 NS0: the reduced gradient of layer 0",
                                                             "0 AR0",
                                                             "1 NS0: the reduced gradient of layer 0",
                                                             "1 N: the squares of the gradient of layer 0",
                                                         }));
}

TEST(Replay, RepeatsTheCycle) {
  const Schedule schedule = generate("1f1b", {.depth = 3, .num_micro_batches = 4, .stage_layers = {1}});
  const Dataflow dataflow(schedule);
  const ReplayResult one = replay(schedule, dataflow, StaggeredCosts(), 1);
  const ReplayResult five = replay(schedule, dataflow, StaggeredCosts(), 5);
  EXPECT_EQ(one.begin, 0);
  EXPECT_EQ(five.begin, 4 * one.end);
  EXPECT_EQ(five.end, 5 * one.end);
  EXPECT_EQ(time_of(schedule, five, 2, "F2.3").start, time_of(schedule, one, 2, "F2.3").start + five.begin);
}

std::size_t num_blocked(std::string_view text, std::size_t num_cycles) {
  const Schedule schedule = parse_schedule(text, "test");
  return replay(schedule, Dataflow(schedule), StaggeredCosts(), num_cycles).blocked.size();
}

TEST(Replay, KeepsTheOldestValuesWhileComputeIsAStepAhead) {
  // When the data lane of rank 1 comes to its last reduction, of what step t - 2 left, the compute lane makes
  // the same of step t + 1.
  EXPECT_EQ(num_blocked(R"(plenum-schedule 1
layers 1
micro-batches 2
preconditioner kfac
factors 1
staleness 2
rank 0 holds 0
rank 1 holds 0
0 compute: F0.0 B0.0 KA0.0[0]/0 KB0.0[0]/0 P0~2 NS0 U0 | KI0[0]/0~1 F0.0 B0.0 KA0.0[0]/0 KB0.0[0]/0 P0~1 NS0 U0
0 data: AR0 PG0 N | KR0[0]/0~1 AR0 PG0 N KR0[0]/0~2
1 compute: F0.1 B0.1 KA0.1[0]/0 KB0.1[0]/0 P0~2 NS0 U0 | F0.1 B0.1 KA0.1[0]/0 KB0.1[0]/0 P0~1 NS0 U0
1 data: AR0 PG0 N | KR0[0]/0~1 AR0 PG0 N KR0[0]/0~2
)",
                        6),
            0u);
}

TEST(Replay, HoldsBackALaneThatNeedsNothing) {
  EXPECT_EQ(num_blocked(R"(plenum-schedule 1
layers 1
micro-batches 1
rank 0 holds 0
0 compute: F0.0 B0.0 NS0 U0
0 data: N
0 copy: X
)",
                        10),
            0u);
}

TEST(Replay, LetsNoLaneRunAwayFromTheOthers) {
  // Nothing else would hold the exchange of data back: it needs nothing.
  const Schedule schedule = parse_schedule(
      "plenum-schedule 1\nlayers 1\nmicro-batches 1\nrank 0 holds 0\n"
      "0 compute: F0.0 B0.0 NS0 U0\n0 data: N\n0 copy: X\n",
      "test");
  const test::ConstantCosts costs({{ActionType::Forward, 1}, {ActionType::Backward, 2}});
  const ReplayResult result = replay(schedule, Dataflow(schedule), costs, 5);
  EXPECT_EQ(time_of(schedule, result, 0, "F0.0").start, 12);
  EXPECT_EQ(time_of(schedule, result, 0, "X").start, 9) << "in step 4, once step 2 has ended";
}

TEST(Replay, RefusesTimesThatAreNegativeOrNotFinite) {
  const Schedule schedule =
      generate("1f1b", {.depth = 2, .num_micro_batches = 2, .num_replicas = 2, .stage_layers = {1, 1}});
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double seconds : {-1e-9, kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    for (const ActionType type :
         {ActionType::Forward, ActionType::SendActivation, ActionType::ReduceGradient}) {
      const test::ConstantCosts costs({{type, seconds}});
      EXPECT_THROW(replay(schedule, Dataflow(schedule), costs, 1), base::InternalError) << seconds;
    }
    const test::ConstantCosts late({}, seconds);
    for (const MessageOrder order : {MessageOrder::OfLanes, MessageOrder::Free})
      EXPECT_THROW(replay(schedule, Dataflow(schedule), late, 1, order), base::InternalError) << seconds;
  }
}

TEST(Replay, NeedsMoreCyclesWhereAgesReachFurtherBack) {
  Schedule schedule = generate("gpipe", {.depth = 1, .num_micro_batches = 1, .stage_layers = {1}});
  EXPECT_EQ(num_cycles_to_steady_state(Dataflow(schedule)), 2);
  schedule.problem.preconditioner = Preconditioner::Kfac;
  schedule.problem.num_factors = 1;
  schedule.problem.staleness = 200;
  LaneProgram& compute = schedule.ranks[0].lane(Lane::Compute);
  compute = {};
  const StageLayers layers(schedule.problem);
  for (const char* word :
       {"F0.0", "B0.0", "KA0.0[0]/0~3", "KB0.0[0]/0~3", "KI0[0]/0~5", "P0~7", "NS0", "U0"}) {
    compute.append(parse_action(word, layers));
  }
  compute.end_step();
  EXPECT_EQ(num_cycles_to_steady_state(Dataflow(schedule)), 8) << "the greatest age in use counts";
}

}  // namespace
}  // namespace plenum::schedule

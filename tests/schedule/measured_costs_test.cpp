#include "plenum/schedule/simulate/measured_costs.h"

#include <gtest/gtest.h>

#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/periodic_refresh.h"
#include "plenum/schedule/generate/one_forward_one_backward.h"
#include "plenum/schedule/simulate/usual_costs.h"

#include "tests/support/constant_costs.h"

namespace plenum::schedule {
namespace {

Schedule four_stages() {
  return generate_one_forward_one_backward(
      {.depth = 4, .num_micro_batches = 8, .stage_layers = {3, 3, 3, 2}});
}

TEST(MeasuredCosts, PredictTheStepThatWasMeasured) {
  const Schedule schedule = four_stages();
  const Dataflow dataflow(schedule);
  const ReplayResult measured = replay(schedule, dataflow, UsualCosts(schedule.problem), 1);
  MeasuredCosts costs(schedule);
  costs.add(measured.times, {});
  const ReplayResult predicted = replay(schedule, dataflow, costs, 1);
  EXPECT_NEAR(predicted.end - predicted.begin, measured.end - measured.begin, 1e-9);
}

TEST(MeasuredCosts, GiveAPieceItsShareOfWhatWasMeasuredWhole) {
  const Schedule schedule = with_periodic_refresh(four_stages(), KfacFiller(1), 1);
  const Dataflow dataflow(schedule);
  const test::ConstantCosts known({{ActionType::Invert, 6.0}});
  MeasuredCosts costs(schedule);
  costs.add(replay(schedule, dataflow, known, 1).times, {});
  Action invert = StageLayers(schedule.problem).whole(ActionType::Invert, StageId::at(1));
  invert.end_layer = LayerId::at(invert.first_layer.index() + 1);
  EXPECT_DOUBLE_EQ(costs.seconds(Rank::at(1), invert), 6);
  invert.num_pieces = 4;
  invert.piece = 3;
  EXPECT_DOUBLE_EQ(costs.seconds(Rank::at(1), invert), 1.5);
}

TEST(MeasuredCosts, LeaveOutWhatTookMuchLongerThanUsual) {
  const Schedule schedule = four_stages();
  const Dataflow dataflow(schedule);
  MeasuredCosts costs(schedule);
  for (int step = 0; step < 3; ++step) {
    std::vector<RankTimes> times = replay(schedule, dataflow, UsualCosts(schedule.problem), 1).times;
    for (ActionTime& time : times[2][static_cast<std::size_t>(Lane::Compute)]) {
      if (step == 1) time.end = time.start + 100 * (time.end - time.start);
    }
    costs.add(times, {});
  }
  const Action forward =
      StageLayers(schedule.problem).whole(ActionType::Forward, StageId::at(2), MicroBatchId::at(0));
  const double usual = UsualCosts(schedule.problem).seconds(Rank::at(2), forward);
  EXPECT_GT(usual, 0);
  EXPECT_NEAR(costs.seconds(Rank::at(2), forward), usual, 1e-9);
}

TEST(MeasuredCosts, OfACollectiveAreTheLeastThatItTook) {
  const Schedule schedule = four_stages();
  const Dataflow dataflow(schedule);
  MeasuredCosts costs(schedule);
  for (const double seconds : {1.2, 1.0, 1.3}) {
    const test::ConstantCosts known({{ActionType::Agree, seconds}, {ActionType::Forward, 1.0}});
    costs.add(replay(schedule, dataflow, known, 1).times, {});
  }
  EXPECT_NEAR(costs.seconds(Rank::at(0), {.type = ActionType::Agree}), 1.0, 1e-9);
}

TEST(MeasuredCosts, AreMeansOfWhatHasTheSameTypeStageAndLayers) {
  const Schedule schedule = four_stages();
  std::vector<RankTimes> times(4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane)
      times[rank][lane].resize(schedule.ranks[rank].lanes[lane].actions().size());
  }
  const std::span<const Action> actions = schedule.ranks[1].lane(Lane::Compute).actions();
  Action forward;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].type != ActionType::Forward) continue;
    const auto micro_batch = static_cast<double>(actions[i].micro_batch.value);
    times[1][static_cast<std::size_t>(Lane::Compute)][i] = {10, 11 + micro_batch};
    forward = actions[i];
  }
  MeasuredCosts costs(schedule);
  std::vector<bool> is_empty(8);
  is_empty[0] = is_empty[1] = true;
  costs.add(times, is_empty);
  EXPECT_DOUBLE_EQ(costs.seconds(Rank::at(1), forward), (3 + 4 + 5 + 6 + 7 + 8) / 6.0);
  costs.expect_empty({true, false});
  forward.micro_batch = MicroBatchId::at(0);
  EXPECT_EQ(costs.seconds(Rank::at(1), forward), 0);
  forward.stage = StageId::at(2);
  forward.micro_batch = MicroBatchId::at(1);
  EXPECT_EQ(costs.seconds(Rank::at(2), forward), 0);
}

/// A step of one rank that inverts the factors of so many layers, the first ones of them in so many pieces.
Schedule inversions(std::uint32_t num_layers, std::uint8_t num_pieces, std::uint32_t num_cut = 1) {
  Schedule schedule{.name = "inversions",
                    .problem = {.stage_layers = {static_cast<std::uint16_t>(num_layers)}},
                    .ranks = {{}}};
  for (LaneProgram& lane : schedule.ranks[0].lanes) {
    if (&lane == &schedule.ranks[0].lane(Lane::Compute)) {
      for (std::uint32_t layer = 0; layer < num_layers; ++layer) {
        const std::uint8_t count = layer < num_cut ? num_pieces : std::uint8_t{1};
        for (std::uint8_t piece = 0; piece < count; ++piece) {
          lane.append({.type = ActionType::Invert,
                       .stage = StageId::at(0),
                       .first_layer = LayerId::at(layer),
                       .end_layer = LayerId::at(layer + 1),
                       .piece = piece,
                       .num_pieces = count});
        }
      }
    }
    lane.end_step();
  }
  return schedule;
}

/// Each action of the compute lane took so long.
std::vector<RankTimes> times_of(const std::vector<double>& seconds) {
  std::vector<RankTimes> times(1);
  for (const double duration : seconds)
    times[0][static_cast<std::size_t>(Lane::Compute)].push_back({0, duration});
  return times;
}

Action inversion(std::uint32_t layer, std::uint8_t num_pieces) {
  Action action = inversions(layer + 1, 1).ranks[0].lane(Lane::Compute).actions().back();
  action.num_pieces = num_pieces;
  return action;
}

TEST(MeasuredCosts, AddToEveryPieceWhatCuttingWasSeenToCost) {
  const Schedule whole = inversions(2, 1);
  MeasuredCosts alone(whole);
  alone.add(times_of({6, 10}), {});
  const Schedule cut = inversions(2, 3);
  MeasuredCosts costs(cut, &alone);
  costs.add(times_of({3, 2, 4, 10}), {});  // 9 for 6: each piece takes 1 more
  EXPECT_DOUBLE_EQ(costs.seconds(Rank::at(0), inversion(0, 3)), 3);
  EXPECT_DOUBLE_EQ(costs.seconds(Rank::at(0), inversion(0, 1)), 6);
  EXPECT_DOUBLE_EQ(costs.seconds(Rank::at(0), inversion(0, 2)), 6.0 / 2 + 1);
  EXPECT_DOUBLE_EQ(costs.seconds(Rank::at(0), inversion(1, 5)), 10.0 / 5 + 1);
}

/// All pieces of the second layer took less than cutting the first seems to have cost.
TEST(MeasuredCosts, AreThoseOfTheWholeWherePiecesTookLessThanCuttingCosts) {
  const Schedule whole = inversions(2, 1);
  MeasuredCosts alone(whole);
  alone.add(times_of({6, 5}), {});
  const Schedule cut = inversions(2, 3, 2);
  MeasuredCosts costs(cut, &alone);
  costs.add(times_of({12, 12, 12, 1, 2, 3}), {});  // 36 for 6: each piece takes 10 more
  EXPECT_DOUBLE_EQ(costs.seconds(Rank::at(0), inversion(0, 1)), 6);
  EXPECT_DOUBLE_EQ(costs.seconds(Rank::at(0), inversion(1, 1)), 5);
  EXPECT_DOUBLE_EQ(costs.seconds(Rank::at(0), inversion(1, 4)), 5.0 / 4 + 10);
  MeasuredCosts of_pieces_alone(cut);
  of_pieces_alone.add(times_of({12, 12, 12, 1, 2, 3}), {});
  EXPECT_DOUBLE_EQ(of_pieces_alone.seconds(Rank::at(0), inversion(1, 1)), 6);
}

TEST(MeasuredCosts, OfWhatTheScheduleDoesNotDoAreThoseMeasuredBefore) {
  const Schedule larger = inversions(3, 1);
  MeasuredCosts before(larger);
  before.add(times_of({6, 10, 8}), {});
  const Schedule smaller = inversions(1, 1);
  MeasuredCosts costs(smaller, &before);
  costs.add(times_of({7}), {});
  EXPECT_DOUBLE_EQ(costs.seconds(Rank::at(0), inversion(0, 1)), 7);
  EXPECT_DOUBLE_EQ(costs.seconds(Rank::at(0), inversion(2, 1)), 8);
  EXPECT_DOUBLE_EQ(costs.seconds(Rank::at(0), inversion(2, 4)), 2);
  EXPECT_EQ(MeasuredCosts(smaller).seconds(Rank::at(0), inversion(2, 1)), 0);
}

}  // namespace
}  // namespace plenum::schedule

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

}  // namespace
}  // namespace plenum::schedule

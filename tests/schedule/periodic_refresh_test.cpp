#include "plenum/schedule/fill/periodic_refresh.h"

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/schedule/check/check.h"
#include "plenum/schedule/core/action_text.h"
#include "plenum/schedule/core/refreshes.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/muon_filler.h"
#include "plenum/schedule/fill/shampoo_filler.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/text/parse_schedule.h"
#include "plenum/schedule/text/schedule_json.h"
#include "plenum/schedule/text/schedule_text.h"

#include "tests/schedule/pipeline_figures.h"
#include "tests/support/constant_costs.h"

namespace plenum::schedule {
namespace {

std::string lane_text(const Schedule& schedule, Rank rank, Lane lane) {
  const StageLayers layers(schedule.problem);
  const LaneProgram& program = schedule.ranks[rank.index()].lane(lane);
  std::string text;
  for (std::size_t step = 0; step < program.num_steps(); ++step) {
    for (const Action& action : program.step(step)) text += action_text(action, layers) + " ";
    text += "| ";
  }
  return text;
}

TEST(PeriodicRefresh, OfOneRankIsUsedInTheStepOfItsStatistics) {
  const Schedule base = generate("single", {.num_micro_batches = 2, .stage_layers = {1}});
  const Schedule schedule = with_periodic_refresh(base, KfacFiller(2), 2);
  require_checked(schedule);
  EXPECT_EQ(lane_text(schedule, {}, Lane::Compute),
            "F0.0 B0.0 KA0.0[0]/0 KB0.0[0]/0 KA0.0[0]/1 KB0.0[0]/1 "
            "F0.1 B0.1 KA0.1[0]/0 KB0.1[0]/0 KA0.1[0]/1 KB0.1[0]/1 KL0 P0 NS0 U0 | "
            "F0.0 B0.0 F0.1 B0.1 P0~1 NS0 U0 | ");
  EXPECT_EQ(peak_activations(schedule), std::vector<std::size_t>({1}));
}

TEST(PeriodicRefresh, InvertsAndPreconditionsAllLayersOfOneStageAtOnce) {
  const Schedule one = with_periodic_refresh(generate("single", {.stage_layers = {3}}), KfacFiller(1), 1);
  require_checked(one);
  EXPECT_EQ(lane_text(one, {}, Lane::Compute),
            "F0.0 B0.0 KA0.0[0]/0 KB0.0[0]/0 KA0.0[1]/0 KB0.0[1]/0 KA0.0[2]/0 KB0.0[2]/0 KL0 P0 NS0 U0 | ");
  // Of several, what others wait for goes on layer by layer. This one owns no map of the first.
  const Schedule replicas = with_periodic_refresh(
      generate("data-parallel", {.num_replicas = 2, .stage_layers = {3}}), KfacFiller(1), 1);
  require_checked(replicas);
  EXPECT_EQ(lane_text(replicas, Rank::at(1), Lane::Compute),
            "F0.1 B0.1 KA0.1[0]/0 KB0.1[0]/0 KA0.1[1]/0 KB0.1[1]/0 KA0.1[2]/0 KB0.1[2]/0 P0[0] KL0 P0[1] "
            "P0[2] NS0 U0 | ");
  const Schedule stages =
      with_periodic_refresh(generate("1f1b", {.depth = 2, .stage_layers = {1}}), KfacFiller(1), 1);
  EXPECT_EQ(lane_text(stages, {}, Lane::Compute), "F0.0 B0.0 KA0.0[0]/0 KB0.0[0]/0 KI0[0]/0 P0 NS0 U0 | ");
}

TEST(PeriodicRefresh, OfReplicasSumsStatisticsBehindGradients) {
  const Schedule base = generate("data-parallel", {.num_replicas = 2, .stage_layers = {1}});
  const Schedule schedule = with_periodic_refresh(base, KfacFiller(2), 1);
  require_checked(schedule);
  EXPECT_EQ(lane_text(schedule, Rank::at(1), Lane::Compute),
            "F0.1 B0.1 KA0.1[0]/0 KB0.1[0]/0 KA0.1[0]/1 KB0.1[0]/1 KL0 P0 NS0 U0 | ");
  EXPECT_EQ(lane_text(schedule, Rank::at(1), Lane::DataParallel), "AR0 KR0[0]/0 KR0[0]/1 PG0 N | ");
}

TEST(PeriodicRefresh, OfShampooWorksOnWhatTheAgreementHasClipped) {
  const Schedule base = generate("data-parallel", {.num_replicas = 2, .stage_layers = {1}});
  const Schedule schedule = with_periodic_refresh(base, ShampooFiller(2), 2);
  require_checked(schedule);
  EXPECT_EQ(lane_text(schedule, Rank::at(1), Lane::Compute),
            "F0.1 B0.1 NS0 SA0 SR0[0]/1 P0 U0 | F0.1 B0.1 NS0 SA0 P0~1 U0 | ");
  EXPECT_EQ(lane_text(schedule, Rank::at(1), Lane::DataParallel), "AR0 N PG0 | AR0 N PG0 | ");
}

TEST(PeriodicRefresh, OfMuonDividesItsProducts) {
  const Schedule base = generate("data-parallel", {.num_replicas = 2, .stage_layers = {2}});
  const Schedule schedule = with_periodic_refresh(base, MuonFiller(3), 1);
  require_checked(schedule);
  EXPECT_EQ(lane_text(schedule, {}, Lane::Compute), "F0.0 B0.0 NS0 P0[0] P0[1] U0 | ");
  EXPECT_EQ(lane_text(schedule, {}, Lane::DataParallel), "AR0 N PG0[0] PG0[1] | ");
  EXPECT_EQ(parse_schedule(print_schedule_text(schedule), "text"), schedule);
  EXPECT_EQ(parse_schedule(print_schedule_json(schedule), "json"), schedule);
}

TEST(PeriodicRefresh, OfEveryGeneratorIsRightAndRuns) {
  for (const Generator& generator : all_generators()) {
    for (const Recomputation recomputation : {Recomputation::None, Recomputation::Full}) {
      GeneratorOptions options{.depth = generator.is_pipeline() ? 4u : 1u,
                               .num_micro_batches = 4,
                               .num_replicas = generator.mesh == Mesh::OneRank ? 1u : 2u,
                               .stage_layers = {2},
                               .recomputation = recomputation};
      const Schedule schedule = with_periodic_refresh(generator.generate(options), KfacFiller(6), 3);
      EXPECT_NO_THROW(require_checked(schedule)) << generator.name;
      EXPECT_EQ(schedule.num_steps(), 3U);
      EXPECT_GT(simulate(schedule, UnitCosts()).utilization, 0) << generator.name;
      EXPECT_EQ(Refreshes(schedule).num_places(), 1U);
      EXPECT_EQ(Refreshes(schedule).max_age(), 0U);
      for (std::uint64_t step = 0; step < 3; ++step) EXPECT_TRUE(Refreshes(schedule).is_drained(step));
    }
  }
}

TEST(PeriodicRefresh, RefusesMoreStepsThanAnAgeCanSay) {
  const Schedule base = generate("single", {.stage_layers = {1}});
  EXPECT_NO_THROW(with_periodic_refresh(base, KfacFiller(1), 255));
  EXPECT_THROW(with_periodic_refresh(base, KfacFiller(1), 256), base::UserError);
  EXPECT_THROW(with_periodic_refresh(base, KfacFiller(1), 0), base::UserError);
  EXPECT_THROW(with_periodic_refresh(with_periodic_refresh(base, KfacFiller(1), 1), KfacFiller(1), 1),
               base::UserError);
}

/// Inversions alone, of these ages in each step.
Schedule inversions(const std::vector<std::vector<std::uint8_t>>& ages_of_steps) {
  Schedule schedule = generate("single", {.stage_layers = {1}});
  KfacFiller(1).change(schedule.problem);
  LaneProgram& compute = schedule.ranks.front().lane(Lane::Compute);
  const auto invert = [](std::uint8_t age) {
    Action action{.type = ActionType::Invert, .age = age, .stage = StageId{}};
    action.end_layer = LayerId::at(1);
    return action;
  };
  compute = {};
  for (const std::vector<std::uint8_t>& ages : ages_of_steps) {
    for (const std::uint8_t age : ages) compute.append(invert(age));
    compute.end_step();
  }
  return schedule;
}

TEST(Refreshes, AreDrainedWhereNoInversionWaitsForALaterStep) {
  const auto drained = [](const std::vector<std::vector<std::uint8_t>>& ages_of_steps) {
    const Schedule schedule = inversions(ages_of_steps);
    const Refreshes refreshes(schedule);
    std::vector<bool> all;
    for (std::uint64_t step = 0; step < 2 * ages_of_steps.size(); ++step)
      all.push_back(refreshes.is_drained(step));
    EXPECT_EQ(refreshes.is_ever_drained(), std::ranges::find(all, true) != all.end());
    return all;
  };
  using Steps = std::vector<bool>;
  EXPECT_EQ(drained({{0}, {}}), (Steps{true, true, true, true}));
  // Of step 0 in the two steps behind it; the last step has no part in it.
  EXPECT_EQ(drained({{}, {1}, {2}, {}}), (Steps{true, false, false, true, true, false, false, true}));
  // Of the last step in the next cycle.
  EXPECT_EQ(drained({{1}, {}, {}}), (Steps{false, true, true, false, true, true}));
  EXPECT_EQ(drained({{0}, {2}}), (Steps{false, false, false, false}));
  EXPECT_EQ(drained({{9}, {}, {}}), (Steps(6, false)));
}

// Statistics of steps 0 and 1 of three, of which the inverses of the second are made a cycle later.
TEST(Refreshes, HaveAPlaceUntilTheirInversesAreMade) {
  const Schedule schedule = inversions({{0}, {0}, {4}});
  const Refreshes refreshes(schedule);
  EXPECT_EQ(refreshes.max_age(), 4U);
  // Those of step 1 wait for step 5, while steps 3 and 4 take others.
  EXPECT_EQ(refreshes.num_places(), 3U);
  for (const std::uint64_t step : {3, 4}) EXPECT_NE(refreshes.place_of(1, {}), refreshes.place_of(step, {}));
  EXPECT_EQ(refreshes.place_of(0, {}), refreshes.place_of(4, {}));
  EXPECT_THROW(refreshes.place_of(2, {}), base::InternalError);
}

}  // namespace
}  // namespace plenum::schedule

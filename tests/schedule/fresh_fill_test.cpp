// K-FAC whose statistics are taken in the bubbles of their own step.

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/core/curvature_coverage.h"
#include "plenum/schedule/core/event_order.h"
#include "plenum/schedule/core/rank_slots.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/map_bytes.h"
#include "plenum/schedule/fill/shampoo_filler.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/simulate/profile_costs.h"

#include "tests/schedule/pipeline_figures.h"
#include "tests/support/bert_layer_maps.h"
#include "tests/support/constant_costs.h"
#include "tests/support/expect_user_error.h"

namespace plenum::schedule {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMapsOfBert = 6;
constexpr double kMiB = 1024.0 * 1024.0;

/// One layer of BERT-Base on a P100, 32 sequences of 128 tokens.
constexpr LayerCosts kBertLayerOnP100 = {.forward_seconds = 9.748e-3,
                                         .backward_seconds = 16.450e-3,
                                         .curvature_seconds = 25.547e-3,
                                         .inversion_seconds = 71.667e-3,
                                         .precondition_seconds = 6.805e-3,
                                         .saved_error_bytes = 108 * kMiB,
                                         .factor_bytes = 94.5 * kMiB};

Schedule pipeline(std::string_view name, std::size_t num_micro_batches, std::size_t num_replicas = 1,
                  std::size_t depth = 4) {
  return generate(name, {.depth = depth,
                         .num_micro_batches = num_micro_batches,
                         .num_replicas = num_replicas,
                         .stage_layers = {3}});
}

KfacFiller bert_kfac() {
  return KfacFiller(map_bytes(kBertLayerOnP100, test::bert_layer_maps()));
}

FillResult freshly_filled(const Schedule& base, FillOptions options = {}) {
  options.mode = FillMode::Fresh;
  const ProfileCosts costs(base, kBertLayerOnP100, {.maps = test::bert_layer_maps()});
  return fill(base, bert_kfac(), costs, options);
}

FillResult deferred_fill(const Schedule& base) {
  const ProfileCosts costs(base, kBertLayerOnP100, {.maps = test::bert_layer_maps()});
  return fill(base, bert_kfac(), costs);
}

template <typename Visit>
void for_each_computation(const Schedule& schedule, Visit visit) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const LaneProgram& lane = schedule.ranks[rank].lane(Lane::Compute);
    for (std::size_t step = 0; step < lane.num_steps(); ++step) {
      for (const Action& action : lane.step(step)) visit(Rank::at(rank), step, action);
    }
  }
}

/// Nothing of a micro-batch is there when its step has ended.
void expect_nothing_outlives_its_step(const Schedule& schedule) {
  const Dataflow dataflow(schedule);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const LaneProgram& lane = schedule.ranks[rank].lane(Lane::Compute);
    for (const Lifetime& life : kept_lifetimes(dataflow, Rank::at(rank), KeptFor::Curvature))
      EXPECT_LE(life.time.end, static_cast<std::int64_t>(2 * lane.step_end(life.step)));
  }
}

/// Of each stage on each rank the same micro-batches in all maps. Every layer in one step, the same on all
/// ranks.
void expect_even_statistics(const Schedule& schedule) {
  using Maps = std::map<std::pair<LayerId, std::uint16_t>, std::set<MicroBatchId>>;
  std::map<std::tuple<Rank, StageId, ActionType>, Maps> covered;
  std::map<LayerId, std::size_t> step_of_layer;
  for_each_computation(schedule, [&](Rank rank, std::size_t step, const Action& action) {
    if (!is_curvature(action.type)) return;
    EXPECT_EQ(step_of_layer.try_emplace(action.first_layer, step).first->second, step);
    EXPECT_EQ(action.age, 0U);
    Maps& maps = covered[{rank, action.stage, action.type}];
    maps[{action.first_layer, action.factor}].insert(action.micro_batch);
  });
  for (const auto& [key, of_maps] : covered) {
    EXPECT_EQ(of_maps.size(), 3 * kMapsOfBert);
    for (const auto& [map, micro_batches] : of_maps) EXPECT_EQ(micro_batches, of_maps.begin()->second);
  }
}

class FreshFill : public testing::TestWithParam<std::string_view> {};

TEST_P(FreshFill, TakesStatisticsInTheirOwnStep) {
  for (const std::size_t num_micro_batches : {4, 8}) {
    for (const std::size_t num_replicas : {1, 2}) {
      SCOPED_TRACE(testing::Message() << num_micro_batches << " micro-batches, replicas " << num_replicas);
      const FillResult filled = freshly_filled(pipeline(GetParam(), num_micro_batches, num_replicas));
      EXPECT_NO_THROW(require_checked(filled.schedule));
      expect_nothing_outlives_its_step(filled.schedule);
      expect_even_statistics(filled.schedule);
      EXPECT_LE(filled.filled_step_seconds, 1.01 * filled.base_step_seconds + 1e-9);
      EXPECT_EQ(filled.refresh_steps, static_cast<double>(filled.schedule.num_steps()));
      EXPECT_GE(filled.coverage_a.mean, filled.coverage_b.mean - 1e-12);
      EXPECT_GE(filled.coverage_b.least, 1.0 / static_cast<double>(num_micro_batches * num_replicas) - 1e-12);
      EXPECT_LT(filled.coverage_b.least, 1) << "otherwise this tests nothing";
    }
  }
}

TEST_P(FreshFill, KeepsLessThanDeferredWork) {
  const Schedule base = pipeline(GetParam(), 4);
  const auto kept = [&](const FillResult& filled) {
    std::size_t added = 0;
    const CheckResult result = check(filled.schedule);
    for (std::size_t rank = 0; rank < base.ranks.size(); ++rank)
      added = std::max(added, result.peak_kept_layers[rank] - result.peak_activation_layers[rank]);
    return added;
  };
  EXPECT_LE(kept(freshly_filled(base)), 6U) << "two micro-batches of a stage";
  EXPECT_GE(kept(deferred_fill(base)), 12U);
}

INSTANTIATE_TEST_SUITE_P(Of, FreshFill, testing::Values("gpipe", "1f1b", "chimera", "zb-h1", "interleaved"),
                         [](const auto& name) {
                           std::string word(name.param);
                           std::erase(word, '-');
                           return word;
                         });

std::size_t most_slots(const Schedule& schedule) {
  const Dataflow dataflow(schedule);
  const EventOrder order(dataflow);
  std::size_t most = 0;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    most = std::max(most, RankSlots(order, Rank::at(rank)).num_slots(TenantKind::Kept));
  return most;
}

TEST(FreshFilling, NeedsTheActivationsOfTheUnfilledSchedule) {
  for (const std::string_view name : {"gpipe", "1f1b", "chimera"}) {
    const Schedule base = pipeline(name, 4);
    EXPECT_EQ(most_slots(freshly_filled(base).schedule), most_slots(base)) << name;
    EXPECT_GT(most_slots(deferred_fill(base).schedule), most_slots(base)) << name;
  }
}

TEST(FreshFilling, RefreshesOneForwardOneBackwardEveryTwoStepsInIdleTime) {
  const Schedule base = pipeline("1f1b", 4);
  const FillResult fresh = freshly_filled(base);
  EXPECT_EQ(fresh.refresh_steps, 2);
  EXPECT_NEAR(fresh.filled_step_seconds, fresh.base_step_seconds, 1e-9);
  EXPECT_GE(fresh.coverage_b.least, 0.5);
  EXPECT_LT(fresh.mean_age, deferred_fill(base).mean_age);
  const auto kept = [](const FillResult& filled) {
    return *std::ranges::max_element(filled.peak_kept_bytes);
  };
  EXPECT_LT(kept(fresh), 0.5 * kept(deferred_fill(base)));
}

/// The first and the last rank have room for a layer behind their last backwards, not for all.
TEST(FreshFilling, TakesStatisticsOfLayersInDifferentStepsWhereOneHasNoRoomForAll) {
  const FillResult filled = freshly_filled(pipeline("chimera", 4));
  std::set<std::size_t> steps;
  for_each_computation(filled.schedule, [&](Rank, std::size_t step, const Action& action) {
    if (is_curvature(action.type)) steps.insert(step);
  });
  EXPECT_GT(steps.size(), 1U);
  EXPECT_LE(filled.refresh_steps, 5);
  EXPECT_NEAR(filled.filled_step_seconds, filled.base_step_seconds, 1e-9);
}

/// Behind the backwards of GPipe's first stage there is no idle time.
TEST(FreshFilling, SpreadsStatisticsThatHaveNoRoomOverAsManyStepsAsTheMarginNeeds) {
  const Schedule base = pipeline("gpipe", 4);
  double steps_before = 1000;
  for (const double margin : {0.005, 0.01, 0.05}) {
    const FillResult filled = freshly_filled(base, {.margin = margin});
    EXPECT_GT(filled.filled_step_seconds, base.num_steps() * filled.base_step_seconds);
    EXPECT_LE(filled.filled_step_seconds, (1 + margin) * filled.base_step_seconds + 1e-9);
    EXPECT_LT(filled.refresh_steps, steps_before);
    steps_before = filled.refresh_steps;
    EXPECT_EQ(filled.coverage_b.least, 0.25);
    EXPECT_GT(filled.coverage_b.mean, 0.25);
  }
}

/// On the first stage nothing is idle behind the last backward, but before it.
TEST(FreshFilling, CoversAllButTheLastErrorsWhereThereIsRoom) {
  using enum ActionType;
  const test::ConstantCosts costs({{Forward, 1.0},
                                   {Backward, 2.0},
                                   {CurvatureA, 0.01},
                                   {CurvatureB, 0.01},
                                   {Invert, 0.02},
                                   {Precondition, 0.2}});
  const FillResult filled =
      fill(pipeline("1f1b", 4), KfacFiller(kMapsOfBert), costs, {.mode = FillMode::Fresh});
  EXPECT_EQ(filled.coverage_a.least, 1);
  EXPECT_EQ(filled.coverage_b.least, 0.75);
  EXPECT_NEAR(filled.coverage_b.mean, (3 + 0.75) / 4, 1e-9);
  EXPECT_EQ(filled.refresh_steps, 1);
  EXPECT_NO_THROW(require_checked(filled.schedule));
  expect_nothing_outlives_its_step(filled.schedule);
}

/// Here all ranks wait behind their last backward.
TEST(FreshFilling, IsNotPartialWhereAllIsCovered) {
  using enum ActionType;
  const test::ConstantCosts costs(
      {{Forward, 1.0}, {Backward, 2.0}, {Agree, 5}, {CurvatureA, 0.01}, {CurvatureB, 0.01}});
  const FillResult filled =
      fill(pipeline("1f1b", 4), KfacFiller(kMapsOfBert), costs, {.mode = FillMode::Fresh});
  EXPECT_EQ(filled.coverage_b.least, 1);
  EXPECT_FALSE(filled.schedule.problem.has_partial_curvature);
  EXPECT_NO_THROW(require_checked(filled.schedule));
}

TEST(FreshFilling, EndsAllWorkWithItsCycleIfItDrains) {
  const FillResult filled = freshly_filled(pipeline("1f1b", 4), {.drains = true});
  EXPECT_NO_THROW(require_checked(filled.schedule));
  for_each_computation(filled.schedule, [](Rank, std::size_t step, const Action& action) {
    if (action.type != ActionType::Precondition) {
      EXPECT_LE(action.age, step);
    }
  });
}

TEST(FreshFilling, SaysWhichLimitItCannotKeep) {
  const auto error = [](const Schedule& base, const FillOptions& options) {
    return test::user_error_of([&] { freshly_filled(base, options); });
  };
  EXPECT_THAT(error(pipeline("gpipe", 4), {.margin = 0.001, .max_cycle_steps = 10}),
              HasSubstr("filling makes a step at least"));
  EXPECT_THAT(error(pipeline("1f1b", 4), {.max_cycle_steps = 1}), HasSubstr("no cycle of up to 1 steps"));
  EXPECT_THAT(error(pipeline("1f1b", 4), {.max_kept_bytes = 1}), HasSubstr("the limit is 0.0 MiB"));
  EXPECT_THAT(test::user_error_of([&] {
                fill(pipeline("1f1b", 4), ShampooFiller(2), test::ConstantCosts({{ActionType::Forward, 1.0}}),
                     {.mode = FillMode::Fresh});
              }),
              HasSubstr("only statistics of single micro-batches"));
}

TEST(FreshFilling, KeepsToALimitOfMemory) {
  const Schedule base = pipeline("1f1b", 4);
  const FillResult free = freshly_filled(base);
  const double most = 0.7 * *std::ranges::max_element(free.peak_kept_bytes);
  const FillResult limited = freshly_filled(base, {.max_kept_bytes = most});
  EXPECT_LE(*std::ranges::max_element(limited.peak_kept_bytes), most);
  EXPECT_LT(limited.coverage_b.mean, free.coverage_b.mean);
}

}  // namespace
}  // namespace plenum::schedule

#include "plenum/schedule/fill/fill.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/schedule/check/check.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/shampoo_filler.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/simulate/profile_costs.h"
#include "plenum/schedule/simulate/simulate.h"

#include "tests/schedule/pipeline_figures.h"
#include "tests/support/bert_layer_maps.h"
#include "tests/support/constant_costs.h"

namespace plenum::schedule {
namespace {

using ::testing::HasSubstr;

constexpr double kMebibyte = 1024.0 * 1024.0;
constexpr std::size_t kNumMaps = 6;  // of a BERT layer

/// One layer of BERT-Base on a P100, 32 sequences of 128 tokens.
constexpr LayerCosts kBertBaseP100 = {.forward_seconds = 9.748101e-3,
                                      .backward_seconds = 16.450238e-3,
                                      .curvature_seconds = 25.546598e-3,
                                      .inversion_seconds = 71.666884e-3,
                                      .precondition_seconds = 6.805301e-3,
                                      .parameter_bytes = 39.1 * kMebibyte,
                                      .saved_error_bytes = 108 * kMebibyte,
                                      .factor_bytes = 94.5 * kMebibyte};

/// The same with 8 sequences on an RTX 3090: inversion takes as long as 16 forwards and backwards.
constexpr LayerCosts kBertBaseRtx3090Batch8 = {.forward_seconds = 1.062e-3,
                                               .backward_seconds = 1.402e-3,
                                               .curvature_seconds = 2.401e-3,
                                               .inversion_seconds = 38.525e-3,
                                               .precondition_seconds = 1.690e-3};

/// One layer of BERT-Large on a V100, 32 sequences of 128 tokens.
constexpr LayerCosts kBertLargeV100 = {.forward_seconds = 10.386e-3,
                                       .backward_seconds = 16.285e-3,
                                       .curvature_seconds = 27.447e-3,
                                       .inversion_seconds = 80.846e-3,
                                       .precondition_seconds = 8.896e-3};

/// The same with one sequence: a refresh takes more steps than cycles mostly have.
constexpr LayerCosts kBertLargeV100Batch1 = {.forward_seconds = 1.305604e-3,
                                             .backward_seconds = 1.235628e-3,
                                             .curvature_seconds = 3.119731e-3,
                                             .inversion_seconds = 80.857325e-3,
                                             .precondition_seconds = 8.970785e-3};

/// Messages, reductions and updates that take time.
ProfileOptions slow_communication() {
  return {.communication = {.latency_seconds = 20e-6,
                            .bytes_per_second = 5e9,
                            .boundary_bytes = 12 * kMebibyte,
                            .tied_bytes = 90 * kMebibyte},
          .update_seconds_per_layer = 0.4e-3};
}

/// Of a layer with the linear maps of BERT.
ProfileCosts bert_costs(const Schedule& schedule, const LayerCosts& layer, ProfileOptions options = {}) {
  options.maps = test::bert_layer_maps();
  return ProfileCosts(schedule, layer, options);
}

/// Which statistics a filler action works on: the step of the cycle that they are taken in.
std::size_t statistics_step(const Schedule& schedule, std::size_t step, const Action& action) {
  const std::size_t num_steps = schedule.num_steps();
  return (step + (action.age / num_steps + 1) * num_steps - action.age) % num_steps;
}

/// Every item of every refresh runs once, and refreshes start evenly.
void expect_whole_refreshes(const Schedule& schedule, double refresh_steps) {
  using Key = std::tuple<std::size_t, ActionType, StageId, LayerId, std::uint16_t, MicroBatchId>;
  const Dataflow dataflow(schedule);
  std::map<Key, double> runs;
  std::set<std::size_t> starts;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const LaneProgram& lane = schedule.ranks[rank].lane(Lane::Compute);
    for (std::size_t step = 0; step < schedule.num_steps(); ++step) {
      for (const Action& action : lane.step(step)) {
        if (!traits_of(action.type).has_factor) continue;
        const std::size_t taken = statistics_step(schedule, step, action);
        starts.insert(taken);
        runs[{taken, action.type, action.stage, action.first_layer, action.factor, action.micro_batch}] +=
            1.0 / action.num_pieces;
      }
    }
  }
  EXPECT_DOUBLE_EQ(static_cast<double>(schedule.num_steps()) / static_cast<double>(starts.size()),
                   refresh_steps);
  const std::size_t num_maps = dataflow.layers().total() * schedule.problem.num_factors;
  const bool is_kfac = schedule.problem.preconditioner == Preconditioner::Kfac;
  EXPECT_EQ(runs.size(),
            starts.size() * num_maps * (is_kfac ? 2 * schedule.problem.num_micro_batches + 1 : 1));
  for (const auto& [key, count] : runs) EXPECT_NEAR(count, 1, 1e-9);
}

/// Every preconditioning uses the newest inverses that are complete on its rank.
void expect_newest_inverses(const Schedule& schedule) {
  const Dataflow dataflow(schedule);
  const auto num_steps = static_cast<std::int64_t>(schedule.num_steps());
  const std::int64_t num_cycles = 2 + schedule.problem.staleness / num_steps;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::map<std::pair<LayerId, std::int64_t>, std::size_t> num_done;
    for (std::int64_t step = 0; step < num_cycles * num_steps; ++step) {
      for (const Action& action :
           schedule.ranks[rank].lane(Lane::Compute).step(static_cast<std::size_t>(step % num_steps))) {
        const bool is_inverse = action.type == ActionType::Invert || action.type == ActionType::InverseRoot;
        if (is_inverse && action.piece + 1 == action.num_pieces) {
          ++num_done[{action.first_layer, step - action.age}];
        }
        if (action.type != ActionType::Precondition || step < (num_cycles - 1) * num_steps) continue;
        std::size_t num_owned = 0;
        for (std::uint16_t factor = 0; factor < schedule.problem.num_factors; ++factor) {
          num_owned += dataflow.owner(action.stage, action.first_layer, factor) == Rank::at(rank);
        }
        std::int64_t newest = num_owned > 0 ? -1 : step;  // without inverses there is nothing to be stale
        for (const auto& [key, count] : num_done) {
          if (key.first == action.first_layer && count == num_owned) newest = std::max(newest, key.second);
        }
        EXPECT_EQ(step - action.age, newest) << "rank " << rank << " step " << step;
      }
    }
  }
}

void expect_sound(const FillResult& result, const CostModel& costs) {
  require_well_formed(result.schedule);
  const CheckResult checked = check(result.schedule);
  EXPECT_TRUE(checked.violations.empty())
      << checked.violations.front().where << ": " << checked.violations.front().why;
  const ReplayResult replayed = replay(result.schedule, Dataflow(result.schedule), costs, 4);
  EXPECT_TRUE(replayed.blocked.empty());
  EXPECT_LE(replayed.end - replayed.begin,
            result.base_step_seconds * static_cast<double>(result.schedule.num_steps()) * 1.0001);
  EXPECT_GE(result.refresh_steps, result.refresh_bound * (1 - 1e-9));
  expect_whole_refreshes(result.schedule, result.refresh_steps);
  expect_newest_inverses(result.schedule);
}

TEST(Fill, RefreshesAlmostAsOftenAsTheBubblesAllow) {
  const std::map<std::string_view, double> published = {{"gpipe", 2.21}, {"1f1b", 2.21}, {"chimera", 5.28}};
  for (const std::string_view name : pipeline_names()) {
    SCOPED_TRACE(name);
    const Schedule base =
        generator_named(name).generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
    const ProfileCosts costs = bert_costs(base, kBertBaseP100);
    const FillResult result = fill(base, KfacFiller(kNumMaps), costs);
    if (published.contains(name)) {
      EXPECT_NEAR(result.refresh_bound, published.at(name), 0.005);
    }
    EXPECT_LE(result.refresh_steps, result.refresh_bound * 1.01);
    EXPECT_GE(result.utilization, 0.99);
    EXPECT_LE(result.filled_step_seconds, result.base_step_seconds * 1.0001);
    EXPECT_LE(result.mean_age, 2 * result.refresh_bound);
    expect_sound(result, costs);
  }
}

TEST(Fill, CutsInversionsThatAreLongerThanEveryGap) {
  for (const std::string_view name : pipeline_names()) {
    SCOPED_TRACE(name);
    const Schedule base =
        generator_named(name).generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
    const ProfileCosts costs = bert_costs(base, kBertBaseRtx3090Batch8);
    const FillResult result = fill(base, KfacFiller(kNumMaps), costs);
    EXPECT_LE(result.refresh_steps, result.refresh_bound * 1.05);
    EXPECT_GE(result.utilization, 0.98);
    expect_sound(result, costs);
  }
}

TEST(Fill, KeepsEightStagesBusy) {
  for (const std::string_view name : pipeline_names()) {
    SCOPED_TRACE(name);
    const Schedule base =
        generator_named(name).generate({.depth = 8, .num_micro_batches = 8, .stage_layers = {3}});
    const ProfileCosts costs = bert_costs(base, kBertBaseP100);
    const FillResult result = fill(base, KfacFiller(kNumMaps), costs);
    EXPECT_LE(result.refresh_steps, result.refresh_bound * 1.03);
    EXPECT_GE(result.utilization, 0.97);
    EXPECT_TRUE(check(result.schedule).violations.empty());
  }
}

TEST(Fill, RefreshesAlmostAsOftenOnOtherDevicesAndModels) {
  for (const std::string_view name : pipeline_names()) {
    SCOPED_TRACE(name);
    const Schedule base =
        generator_named(name).generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
    const ProfileCosts costs = bert_costs(base, kBertLargeV100);
    const FillResult result = fill(base, KfacFiller(kNumMaps), costs);
    EXPECT_LE(result.refresh_steps, result.refresh_bound * 1.03);
    EXPECT_GE(result.utilization, 0.98);
    expect_sound(result, costs);
  }
}

TEST(Fill, TriesLongerCyclesWhereARefreshIsLong) {
  const Schedule base =
      generator_named("zb-h1").generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
  const ProfileCosts costs = bert_costs(base, kBertLargeV100Batch1);
  const FillResult result = fill(base, KfacFiller(kNumMaps), costs);
  EXPECT_LE(result.refresh_steps, result.refresh_bound * 1.03);
  EXPECT_GT(fill(base, KfacFiller(kNumMaps), costs, {.max_cycle_steps = 48}).refresh_steps,
            result.refresh_bound * 1.1);
  expect_sound(result, costs);
}

TEST(Fill, KeepsSixteenStagesBusy) {
  for (const std::string_view name : {"1f1b", "chimera"}) {
    SCOPED_TRACE(name);
    const Schedule base =
        generator_named(name).generate({.depth = 16, .num_micro_batches = 16, .stage_layers = {3}});
    const ProfileCosts costs = bert_costs(base, kBertLargeV100);
    const FillResult result = fill(base, KfacFiller(kNumMaps), costs);
    EXPECT_LE(result.refresh_steps, result.refresh_bound * 1.05);
    EXPECT_GE(result.utilization, 0.95);
    EXPECT_TRUE(check(result.schedule).violations.empty());
  }
}

TEST(Fill, HoldsUnderReplicasUnequalWorkAndSlowCommunication) {
  for (const std::string_view name : pipeline_names()) {
    for (const auto& [sharding, recomputation] :
         {std::pair{Sharding::None, Recomputation::Full}, {Sharding::Optimizer, Recomputation::None}}) {
      SCOPED_TRACE(name);
      const std::size_t num_stages = generator_named(name).has_chunks ? 8 : 4;
      std::vector<std::uint16_t> stage_layers(num_stages, 2);
      stage_layers[1] = 3;
      stage_layers[2] = 1;
      const Schedule base = generator_named(name).generate(
          {.depth = 4,
           .num_micro_batches = 4,
           .num_replicas = 2,
           .stage_layers = stage_layers,
           .num_buckets = 2,
           .recomputation = recomputation,
           .sharding = sharding,
           .has_tied_parameters = true,
           .micro_batch_sizes = {1000, 1300, 900, 1100, 1500, 700, 1250, 1050}});
      const ProfileCosts costs = bert_costs(base, kBertBaseP100, slow_communication());
      const FillResult result = fill(base, KfacFiller(kNumMaps), costs);
      EXPECT_LE(result.refresh_steps, result.refresh_bound * 1.05);
      expect_sound(result, costs);
    }
  }
}

TEST(Fill, KeepsReplicasBusy) {
  for (const auto& [name, num_replicas] :
       {std::pair{"gpipe", 3}, {"1f1b", 6}, {"chimera", 3}, {"interleaved", 2}, {"zb-h1", 3}}) {
    SCOPED_TRACE(name);
    const Schedule base =
        generator_named(name).generate({.depth = 4,
                                        .num_micro_batches = 4,
                                        .num_replicas = static_cast<std::size_t>(num_replicas),
                                        .stage_layers = {3}});
    const ProfileCosts costs = bert_costs(base, kBertBaseP100, slow_communication());
    const FillResult result = fill(base, KfacFiller(kNumMaps), costs);
    EXPECT_LE(result.refresh_steps, result.refresh_bound * 1.05);
    EXPECT_GE(result.utilization, 0.95);
    expect_sound(result, costs);
  }
}

TEST(Fill, ReducesBesideAgreementsThatTakeNoTime) {
  for (const std::string_view name : pipeline_names()) {
    SCOPED_TRACE(name);
    const Schedule base = generator_named(name).generate(
        {.depth = 4, .num_micro_batches = 4, .num_replicas = 2, .stage_layers = {3}});
    const ProfileCosts costs = bert_costs(base, kBertBaseP100, {.communication = {.bytes_per_second = 5e9}});
    const FillResult result = fill(base, KfacFiller(kNumMaps), costs);
    EXPECT_LE(result.refresh_steps, result.refresh_bound * 1.05);
    expect_sound(result, costs);
  }
}

TEST(Fill, BoundsARefreshByTheLinkThatReducesIt) {
  const Schedule base = generator_named("gpipe").generate(
      {.depth = 4, .num_micro_batches = 4, .num_replicas = 2, .stage_layers = {3}});
  // A refresh reduces three layers' factors, which takes as long as three steps.
  const double step_seconds =
      fill(base, KfacFiller(kNumMaps), bert_costs(base, kBertBaseP100)).base_step_seconds;
  const double bytes = 3 * kBertBaseP100.factor_bytes;
  const ProfileCosts costs = bert_costs(
      base, kBertBaseP100,
      {.communication = {.bytes_per_second = bytes / (3 * step_seconds), .gradient_bytes_per_layer = 0}});
  const FillResult result = fill(base, KfacFiller(kNumMaps), costs);
  EXPECT_NEAR(result.refresh_bound, 3, 1e-6);
  expect_sound(result, costs);
}

TEST(Fill, PlacesInverseRootsOfShampoo) {
  for (const std::string_view name : pipeline_names()) {
    for (const std::size_t num_replicas : {1, 2}) {
      SCOPED_TRACE(name);
      const Schedule base = generator_named(name).generate(
          {.depth = 4, .num_micro_batches = 4, .num_replicas = num_replicas, .stage_layers = {3}});
      const ProfileCosts costs = bert_costs(base, kBertBaseP100, {.inverse_root_factor = 5});
      const FillResult result = fill(base, ShampooFiller(kNumMaps), costs);
      EXPECT_EQ(result.schedule.problem.preconditioner, Preconditioner::Shampoo);
      EXPECT_LE(result.refresh_steps, result.refresh_bound * 1.03);
      expect_sound(result, costs);
    }
  }
}

TEST(Fill, RefreshesOnceInAStepWhereThereIsRoomForMore) {
  const Schedule base =
      generator_named("gpipe").generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
  const test::ConstantCosts costs({{ActionType::Forward, 1},
                                   {ActionType::Backward, 2},
                                   {ActionType::CurvatureA, 0.01},
                                   {ActionType::CurvatureB, 0.01},
                                   {ActionType::Invert, 0.1}});
  const FillResult result = fill(base, KfacFiller(kNumMaps), costs);
  EXPECT_DOUBLE_EQ(result.refresh_bound, 1);
  EXPECT_DOUBLE_EQ(result.refresh_steps, 1);
  EXPECT_EQ(result.schedule.num_steps(), 1);
  EXPECT_LE(result.max_age, 2);
  expect_sound(result, costs);
}

TEST(Fill, PlacesWorkThatTakesNoTimeWithoutAnyGap) {
  const Schedule base = generator_named("single").generate({.num_micro_batches = 2, .stage_layers = {3}});
  const test::ConstantCosts costs({{ActionType::Forward, 1}, {ActionType::Backward, 2}});
  const FillResult result = fill(base, KfacFiller(2), costs);
  EXPECT_DOUBLE_EQ(result.refresh_steps, 1);
  expect_sound(result, costs);
}

TEST(Fill, RefusesWorkOfATimeThatIsNegativeOrNotFinite) {
  const Schedule base = generator_named("single").generate({.num_micro_batches = 2, .stage_layers = {3}});
  for (const double seconds : {-1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    const test::ConstantCosts costs(
        {{ActionType::Forward, 1}, {ActionType::Backward, 2}, {ActionType::Invert, seconds}});
    EXPECT_THROW(fill(base, KfacFiller(2), costs), base::InternalError) << seconds;
  }
}

TEST(Fill, OrdersWorkThatTakesNoTimeByWhatItWaitsFor) {
  const test::ConstantCosts costs({{ActionType::Forward, 1},
                                   {ActionType::Backward, 2},
                                   {ActionType::InputGradient, 1},
                                   {ActionType::WeightGradient, 1}});
  for (const std::string_view name : pipeline_names()) {
    for (const std::size_t num_replicas : {1, 2}) {
      SCOPED_TRACE(fmt::format("{} {}", name, num_replicas));
      const Schedule base = generator_named(name).generate({.depth = 4,
                                                            .num_micro_batches = 4,
                                                            .num_replicas = num_replicas,
                                                            .stage_layers = {1},
                                                            .has_tied_parameters = true});
      for (const bool is_kfac : {true, false}) {
        const FillResult result =
            is_kfac ? fill(base, KfacFiller(2), costs) : fill(base, ShampooFiller(2), costs);
        EXPECT_DOUBLE_EQ(result.refresh_steps, 1);
        EXPECT_DOUBLE_EQ(result.filled_step_seconds, result.base_step_seconds);
        expect_sound(result, costs);
      }
    }
  }
}

TEST(Fill, RefusesAScheduleWithoutIdleTime) {
  const Schedule base = generator_named("single").generate({.num_micro_batches = 2, .stage_layers = {3}});
  EXPECT_THROW(fill(base, KfacFiller(kNumMaps), bert_costs(base, kBertBaseP100)), base::UserError);
}

/// What fill() says when it refuses.
std::string refusal(const Schedule& base, const Filler& filler, const CostModel& costs,
                    const FillOptions& options = {}) {
  try {
    fill(base, filler, costs, options);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Fill, RefusesWorkThatIsTooLongForAnyCycle) {
  const Schedule base =
      generator_named("1f1b").generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
  LayerCosts layer = kBertBaseP100;
  for (const double seconds : {1e3, 1e30}) {
    layer.inversion_seconds = seconds;
    EXPECT_THAT(refusal(base, KfacFiller(kNumMaps), bert_costs(base, layer)),
                HasSubstr("steps of idle time; a staleness of at most 254 allows 255"));
  }
}

TEST(Fill, SaysWhichLimitItCannotKeep) {
  const Schedule base =
      generator_named("gpipe").generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
  const ProfileCosts costs = bert_costs(base, kBertBaseP100);
  const KfacFiller filler(map_bytes(kBertBaseP100, test::bert_layer_maps()));
  EXPECT_THAT(refusal(base, filler, costs, {.max_kept_bytes = 100 * kMebibyte}),
              HasSubstr("the limit is 100.0 MiB"));
  EXPECT_THAT(refusal(base, filler, costs, {.max_staleness = 2}), HasSubstr("more than 2 steps stale"));
  EXPECT_THAT(refusal(base, filler, costs, {.max_staleness = 255}), HasSubstr("at most 254 steps stale"));
  LayerCosts layer = kBertBaseP100;
  layer.inversion_seconds = 2;
  EXPECT_THAT(refusal(base, KfacFiller(std::vector<MapBytes>(kNumMaps), 1), bert_costs(base, layer)),
              HasSubstr("has room for the work"));
}

TEST(Fill, AllowsForRoundingWithoutAMargin) {
  constexpr LayerCosts kBertBaseP100Batch16 = {.forward_seconds = 5.035e-3,
                                               .backward_seconds = 8.597e-3,
                                               .curvature_seconds = 13.223e-3,
                                               .inversion_seconds = 71.759e-3,
                                               .precondition_seconds = 6.81e-3};
  for (const std::string_view name : pipeline_names()) {
    SCOPED_TRACE(name);
    const Schedule base =
        generator_named(name).generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
    const ProfileCosts costs = bert_costs(base, kBertBaseP100Batch16);
    EXPECT_EQ(fill(base, KfacFiller(kNumMaps), costs, {.margin = 0}).schedule,
              fill(base, KfacFiller(kNumMaps), costs).schedule);
  }
}

TEST(Fill, CutsItemsThatAreTooLongForTheShortestGap) {
  const Schedule base =
      generator_named("chimera").generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
  const ProfileCosts costs = bert_costs(base, kBertBaseRtx3090Batch8);
  const FillResult result = fill(base, KfacFiller(std::vector<MapBytes>(kNumMaps), 8), costs);
  EXPECT_LE(result.refresh_steps, result.refresh_bound * 1.15);
  expect_sound(result, costs);
}

TEST(Fill, KeepsTheFactorsOfInverseRootsThatWait) {
  const Schedule base =
      generator_named("gpipe").generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
  const ProfileCosts costs = bert_costs(base, kBertBaseP100, {.inverse_root_factor = 5});
  const ShampooFiller filler(map_bytes(kBertBaseP100, test::bert_layer_maps()));
  const FillResult result = fill(base, filler, costs);
  // All factors of a rank wait at first.
  for (const double peak : result.peak_kept_bytes) EXPECT_GE(peak, 3 * kBertBaseP100.factor_bytes * 0.999);
  EXPECT_THROW(fill(base, filler, costs, {.max_kept_bytes = kBertBaseP100.factor_bytes}), base::UserError);
}

TEST(Fill, RefusesToFillTwice) {
  const Schedule base =
      generator_named("gpipe").generate({.depth = 2, .num_micro_batches = 2, .stage_layers = {1}});
  const ProfileCosts costs = bert_costs(base, kBertBaseP100);
  const FillResult result = fill(base, KfacFiller(kNumMaps), costs);
  EXPECT_THROW(fill(result.schedule, KfacFiller(kNumMaps), costs), base::UserError);
}

/// The most bytes that statistics and factors keep alive on a rank, counted action by action from a replay:
/// an input of A from the last backward that reads it, an output gradient from its backward, until the
/// curvature is done; factors from their first curvature until they are inverted.
double replayed_peak_bytes(const Schedule& schedule, const CostModel& costs,
                           const std::vector<MapBytes>& maps, std::size_t rank) {
  const ReplayResult result = replay(schedule, Dataflow(schedule), costs, 3);
  const double cycle = result.end - result.begin;
  const LaneProgram& lane = schedule.ranks[rank].lane(Lane::Compute);
  const LaneTimes& times = result.times[rank][static_cast<std::size_t>(Lane::Compute)];
  const auto num_steps = static_cast<std::int64_t>(schedule.num_steps());
  std::map<std::pair<std::int64_t, MicroBatchId>, double> backward_ends;
  std::map<std::tuple<std::int64_t, LayerId, std::uint16_t>, double> first_curvature;
  std::vector<std::pair<double, double>> changes;
  const auto keep = [&](double from, double until, double bytes) {
    for (int cycles = -12; cycles <= 12; ++cycles) {
      changes.emplace_back(from + cycles * cycle, bytes);
      changes.emplace_back(until + cycles * cycle, -bytes);
    }
  };
  const auto for_each = [&](auto visit) {
    for (std::size_t step = 0; step < schedule.num_steps(); ++step) {
      for (std::size_t i = 0; i < lane.step(step).size(); ++i) {
        const Action& action = lane.step(step)[i];
        const std::int64_t taken = static_cast<std::int64_t>(step) - action.age;
        const std::int64_t in_cycle = (taken % num_steps + num_steps) % num_steps;
        // All times as of the cycle in which the statistics are taken.
        const double shift = static_cast<double>((taken - in_cycle) / num_steps) * cycle;
        visit(action, in_cycle, times[lane.step_begin(step) + i].end - shift);
      }
    }
  };
  for_each([&](const Action& action, std::int64_t taken, double end) {
    if (action.type == ActionType::Backward) backward_ends[{taken, action.micro_batch}] = end;
    if (!traits_of(action.type).has_micro_batch || !traits_of(action.type).has_factor) return;
    double& first =
        first_curvature.try_emplace({taken, action.first_layer, action.factor}, end).first->second;
    first = std::min(first, end);
  });
  for_each([&](const Action& action, std::int64_t taken, double end) {
    const MapBytes& map = maps[action.factor];
    if (action.type == ActionType::CurvatureA || action.type == ActionType::CurvatureB) {
      const double from = backward_ends.at({taken, action.micro_batch});
      const bool is_a = action.type == ActionType::CurvatureA;
      if (end > from) keep(from, end, is_a ? map.input_bytes : map.output_gradient_bytes);
    }
    if (action.type == ActionType::Invert && action.piece + 1 == action.num_pieces) {
      keep(first_curvature.at({taken, action.first_layer, action.factor}), end, map.factor_bytes);
    }
  });
  std::sort(changes.begin(), changes.end());
  double now = 0;
  double peak = 0;
  for (const auto& [time, bytes] : changes) peak = std::max(peak, now += bytes);
  return peak;
}

TEST(Fill, ReportsTheMemoryThatWaitingWorkKeeps) {
  const Schedule base =
      generator_named("1f1b").generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
  const ProfileCosts costs = bert_costs(base, kBertBaseP100);
  const std::vector<MapBytes> maps = map_bytes(kBertBaseP100, test::bert_layer_maps());
  const FillResult result = fill(base, KfacFiller(maps), costs);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const double replayed = replayed_peak_bytes(result.schedule, costs, maps, rank);
    EXPECT_NEAR(result.peak_kept_bytes[rank], replayed, 0.05 * replayed);
  }
}

TEST(Fill, RefreshesLessOftenUnderATightMemoryLimit) {
  const Schedule base =
      generator_named("gpipe").generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
  const ProfileCosts costs = bert_costs(base, kBertBaseP100);
  const KfacFiller filler(map_bytes(kBertBaseP100, test::bert_layer_maps()));
  const FillResult free = fill(base, filler, costs);
  const double least = 2592 * kMebibyte;
  const FillResult tight = fill(base, filler, costs, {.max_kept_bytes = least, .max_cycle_steps = 12});
  EXPECT_GT(*std::max_element(free.peak_kept_bytes.begin(), free.peak_kept_bytes.end()), least);
  EXPECT_LE(*std::max_element(tight.peak_kept_bytes.begin(), tight.peak_kept_bytes.end()), least);
  EXPECT_GT(tight.refresh_steps, free.refresh_steps);
  expect_sound(tight, costs);
  EXPECT_THROW(fill(base, filler, costs, {.max_kept_bytes = least / 2}), base::UserError);
}

TEST(Fill, KeepsTheStalenessLimitOrSaysThatItCannot) {
  const Schedule base =
      generator_named("gpipe").generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
  const ProfileCosts costs = bert_costs(base, kBertBaseP100);
  const FillResult result = fill(base, KfacFiller(kNumMaps), costs, {.max_staleness = 5});
  EXPECT_LE(result.schedule.problem.staleness, 5);
  expect_sound(result, costs);
  EXPECT_THROW(fill(base, KfacFiller(kNumMaps), costs, {.max_staleness = 1}), base::UserError);
}

/// Inverts what it never computed.
class ForgetfulFiller final : public Filler {
 public:
  std::string_view name() const override { return "forgetful"; }
  void change(Problem& problem) const override { kfac_.change(problem); }
  void add_step_actions(const Dataflow& dataflow, Rank rank, std::vector<Action>& actions) const override {
    kfac_.add_step_actions(dataflow, rank, actions);
  }
  void add_refresh(const Dataflow& dataflow, Rank rank, std::vector<WorkItem>& items) const override {
    kfac_.add_refresh(dataflow, rank, items);
    std::erase_if(items, [](const WorkItem& item) { return item.action.type == ActionType::CurvatureB; });
  }

 private:
  KfacFiller kfac_ = KfacFiller(kNumMaps);
};

TEST(Fill, RefusesAFillerWhoseItemsLackAnInput) {
  const Schedule base =
      generator_named("gpipe").generate({.depth = 2, .num_micro_batches = 2, .stage_layers = {1}});
  EXPECT_THROW(fill(base, ForgetfulFiller(), bert_costs(base, kBertBaseP100)), base::UserError);
}

TEST(Fill, GivesTheSameScheduleTwice) {
  const Schedule base =
      generator_named("chimera").generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
  const ProfileCosts costs = bert_costs(base, kBertBaseP100);
  EXPECT_EQ(fill(base, KfacFiller(kNumMaps), costs).schedule,
            fill(base, KfacFiller(kNumMaps), costs).schedule);
}

}  // namespace
}  // namespace plenum::schedule

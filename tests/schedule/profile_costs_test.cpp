#include "plenum/schedule/simulate/profile_costs.h"

#include <limits>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/simulate/simulate.h"

#include "tests/support/bert_layer_maps.h"
#include "tests/support/expect_user_error.h"

namespace plenum::schedule {
namespace {

constexpr std::size_t kNumMaps = 6;

// BERT-Base on a P100, micro-batches of 32 sequences of 128 tokens.
constexpr LayerCosts kBertBase = {.forward_seconds = 9.748e-3,
                                  .backward_seconds = 16.450e-3,
                                  .curvature_seconds = 25.547e-3,
                                  .inversion_seconds = 71.667e-3,
                                  .precondition_seconds = 6.805e-3,
                                  .parameter_bytes = 28e6,
                                  .factor_bytes = 99e6};

Schedule pipeline(GeneratorOptions options) {
  return generator_named("1f1b").generate(options);
}

Action of_map(ActionType type, LayerId layer, std::size_t map) {
  Action action{.type = type, .stage = StageId::at(0)};
  if (traits_of(type).has_micro_batch) action.micro_batch = MicroBatchId::at(0);
  action.first_layer = layer;
  action.end_layer = LayerId::at(layer.index() + 1);
  action.factor = static_cast<std::uint16_t>(map);
  return action;
}

double sum_over_maps(const CostModel& costs, ActionType type) {
  double sum = 0;
  for (std::size_t map = 0; map < kNumMaps; ++map) sum += costs.seconds({}, of_map(type, {}, map));
  return sum;
}

/// Of a layer with the linear maps of BERT.
ProfileCosts bert_costs(const Schedule& schedule, const LayerCosts& layer, ProfileOptions options = {}) {
  options.maps = test::bert_layer_maps();
  return ProfileCosts(schedule, layer, options);
}

TEST(FactorShares, SumToTheWholeLayer) {
  const FactorShares shares(test::bert_layer_maps());
  ASSERT_EQ(shares.num_maps(), kNumMaps);
  double curvature = 0;
  double inversion = 0;
  double precondition = 0;
  for (std::size_t map = 0; map < kNumMaps; ++map) {
    curvature += shares.curvature_a(map) + shares.curvature_b(map);
    inversion += shares.inversion(map);
    precondition += shares.precondition(map);
  }
  EXPECT_DOUBLE_EQ(curvature, 1);
  EXPECT_DOUBLE_EQ(inversion, 1);
  EXPECT_DOUBLE_EQ(precondition, 1);
}

TEST(FactorShares, FollowTheWidths) {
  const FactorShares shares(test::bert_layer_maps());
  // Widths 1 and 1 in four maps, 1 and 4, 4 and 1: squares 8 + 17 + 17, cubes 8 + 65 + 65, products
  // 4 * 2 + 20 + 20.
  EXPECT_DOUBLE_EQ(shares.curvature_a(0), 1.0 / 42);
  EXPECT_DOUBLE_EQ(shares.curvature_a(5), 16.0 / 42);
  EXPECT_DOUBLE_EQ(shares.curvature_b(5), 1.0 / 42);
  EXPECT_DOUBLE_EQ(shares.inversion(3), 2.0 / 138);
  EXPECT_DOUBLE_EQ(shares.inversion(4), 65.0 / 138);
  EXPECT_DOUBLE_EQ(shares.precondition(1), 2.0 / 48);
  EXPECT_DOUBLE_EQ(shares.precondition(4), 20.0 / 48);
  EXPECT_DOUBLE_EQ(shares.factor_size(4), 17.0 / 42);
}

TEST(ProfileCosts, OfAllMapsSumToTheProfile) {
  const Schedule schedule = pipeline({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
  const ProfileCosts costs = bert_costs(schedule, kBertBase);
  EXPECT_DOUBLE_EQ(
      sum_over_maps(costs, ActionType::CurvatureA) + sum_over_maps(costs, ActionType::CurvatureB),
      kBertBase.curvature_seconds);
  EXPECT_DOUBLE_EQ(sum_over_maps(costs, ActionType::Invert), kBertBase.inversion_seconds);
  const StageLayers layers(schedule.problem);
  const StageId stage = StageId::at(2);
  const Rank rank{2};
  const MicroBatchId micro_batch{1};
  const auto seconds = [&](ActionType type) {
    return costs.seconds(rank, layers.whole(type, stage, micro_batch));
  };
  EXPECT_DOUBLE_EQ(seconds(ActionType::Forward), 3 * kBertBase.forward_seconds);
  EXPECT_DOUBLE_EQ(seconds(ActionType::Recompute), 3 * kBertBase.forward_seconds);
  EXPECT_DOUBLE_EQ(seconds(ActionType::Backward), 3 * kBertBase.backward_seconds);
  EXPECT_DOUBLE_EQ(seconds(ActionType::InputGradient), 1.5 * kBertBase.backward_seconds);
  EXPECT_DOUBLE_EQ(seconds(ActionType::WeightGradient), 1.5 * kBertBase.backward_seconds);
  EXPECT_DOUBLE_EQ(seconds(ActionType::InvertLayers), 3 * kBertBase.inversion_seconds);
  EXPECT_DOUBLE_EQ(seconds(ActionType::Precondition), 3 * kBertBase.precondition_seconds);
  EXPECT_DOUBLE_EQ(seconds(ActionType::AccumulateFactor), 3 * kBertBase.precondition_seconds);
  EXPECT_EQ(seconds(ActionType::Update), 0);
  EXPECT_EQ(seconds(ActionType::SendActivation), 0);
  EXPECT_EQ(seconds(ActionType::Agree), 0);
}

TEST(ProfileCosts, GiveTheKnownBoundOfARefresh) {
  const Schedule schedule = pipeline({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
  const ProfileCosts costs = bert_costs(schedule, kBertBase);
  const Simulation simulation = simulate(schedule, costs);
  const double work =
      3 * (4 * (sum_over_maps(costs, ActionType::CurvatureA) + sum_over_maps(costs, ActionType::CurvatureB)) +
           sum_over_maps(costs, ActionType::Invert));
  const double bubble = 3 * 3 * (kBertBase.forward_seconds + kBertBase.backward_seconds);
  for (const double seconds : simulation.bubble_seconds) EXPECT_NEAR(seconds, bubble, 1e-12);
  EXPECT_NEAR(work / bubble, 2.21, 0.005);
  EXPECT_NEAR(simulation.utilization, 4.0 / 7, 1e-12);
}

TEST(ProfileCosts, DividePreconditioningOverHoldersAsOwnersDo) {
  Schedule schedule = pipeline({.depth = 2, .num_micro_batches = 2, .num_replicas = 4, .stage_layers = {3}});
  const ProfileCosts of_base = bert_costs(schedule, kBertBase);
  // What filling makes of it: the same ranks and stages, and factors.
  schedule.problem.preconditioner = Preconditioner::Kfac;
  schedule.problem.num_factors = kNumMaps;
  const ProfileCosts of_filled = bert_costs(schedule, kBertBase);
  const Dataflow dataflow(schedule);
  const FactorShares shares(test::bert_layer_maps());
  const StageId stage = StageId::at(1);
  double sum = 0;
  for (const Rank rank : dataflow.holders(stage)) {
    double owned = 0;
    for (LayerId layer = dataflow.layers().first(stage); layer < dataflow.layers().end(stage);
         ++layer.value) {
      for (std::uint16_t map = 0; map < kNumMaps; ++map) {
        if (dataflow.owner(stage, layer, map) == rank) owned += shares.precondition(map);
      }
    }
    const Action action = dataflow.layers().whole(ActionType::Precondition, stage);
    EXPECT_NEAR(of_base.seconds(rank, action), owned * kBertBase.precondition_seconds, 1e-15);
    EXPECT_EQ(of_base.seconds(rank, action), of_filled.seconds(rank, action));
    sum += of_base.seconds(rank, action);
  }
  EXPECT_NEAR(sum, 3 * kBertBase.precondition_seconds, 1e-15);
}

TEST(ProfileCosts, GrowWithTheMicroBatch) {
  const Schedule schedule = pipeline(
      {.depth = 1, .num_micro_batches = 3, .stage_layers = {2}, .micro_batch_sizes = {100, 200, 600}});
  const ProfileCosts costs =
      bert_costs(schedule, kBertBase, {.communication = {.bytes_per_second = 10, .boundary_bytes = 60}});
  const StageLayers layers(schedule.problem);
  const auto seconds = [&](ActionType type, std::size_t micro_batch) {
    return costs.seconds({}, layers.whole(type, {}, MicroBatchId::at(micro_batch)));
  };
  EXPECT_DOUBLE_EQ(seconds(ActionType::Forward, 0), 2 * kBertBase.forward_seconds / 3);
  EXPECT_DOUBLE_EQ(seconds(ActionType::Backward, 2), 2 * kBertBase.backward_seconds * 2);
  EXPECT_DOUBLE_EQ(seconds(ActionType::SendGradient, 2), 12);
  Action curvature = of_map(ActionType::CurvatureB, {}, 4);
  curvature.micro_batch = MicroBatchId::at(2);
  EXPECT_DOUBLE_EQ(costs.seconds({}, curvature), 2 * 16.0 / 42 * kBertBase.curvature_seconds);
}

TEST(ProfileCosts, ShareAnInversionOverItsPieces) {
  const Schedule schedule = pipeline({.stage_layers = {1}});
  const ProfileCosts costs = bert_costs(schedule, kBertBase, {.inverse_root_factor = 3});
  Action whole = of_map(ActionType::Invert, {}, 4);
  Action part = whole;
  part.num_pieces = 4;
  EXPECT_DOUBLE_EQ(4 * costs.seconds({}, part), costs.seconds({}, whole));
  const double inversion = costs.seconds({}, whole);
  whole.type = ActionType::InverseRoot;
  EXPECT_DOUBLE_EQ(costs.seconds({}, whole), 3 * inversion);
}

TEST(ProfileCosts, CountCommunicationAsRings) {
  const Schedule schedule = pipeline({.depth = 2,
                                      .num_micro_batches = 2,
                                      .num_replicas = 4,
                                      .stage_layers = {3},
                                      .has_tied_parameters = true});
  const CommunicationCosts communication = {.latency_seconds = 1e-5,
                                            .bytes_per_second = 1e9,
                                            .boundary_bytes = 2e6,
                                            .tied_bytes = 4e6,
                                            .exchange_bytes = 8e6};
  const ProfileCosts costs = bert_costs(schedule, kBertBase, {.communication = communication});
  const StageLayers layers(schedule.problem);
  const auto seconds = [&](ActionType type) {
    return costs.seconds({}, layers.whole(type, {}, MicroBatchId::at(0)));
  };
  EXPECT_DOUBLE_EQ(seconds(ActionType::SendActivation), 2e-3);
  EXPECT_EQ(seconds(ActionType::ReceiveActivation), 0);
  EXPECT_EQ(costs.latency_seconds(Rank{0}, Rank{1}), 1e-5);
  const double all_reduce = 2 * 0.75 * 3 * 28e6 / 1e9 + 6e-5;
  EXPECT_DOUBLE_EQ(seconds(ActionType::ReduceGradient), all_reduce);
  EXPECT_DOUBLE_EQ(seconds(ActionType::ReduceScatterGradient), all_reduce / 2);
  EXPECT_DOUBLE_EQ(seconds(ActionType::GatherParameters), all_reduce / 2);
  EXPECT_DOUBLE_EQ(seconds(ActionType::GatherPreconditioned), all_reduce / 2);
  EXPECT_DOUBLE_EQ(costs.seconds({}, of_map(ActionType::ReduceCurvature, {}, 4)),
                   2 * 0.75 * 17.0 / 42 * 99e6 / 1e9 + 6e-5);
  EXPECT_DOUBLE_EQ(costs.seconds({}, {.type = ActionType::ReduceTied}), 2 * (7.0 / 8 * 4e-3 + 7e-5));
  EXPECT_DOUBLE_EQ(costs.seconds({}, {.type = ActionType::ReduceTiedOutput}), 2 * (7.0 / 8 * 4e-3 + 7e-5));
  EXPECT_DOUBLE_EQ(costs.seconds({}, {.type = ActionType::ReduceScatterTiedOutput}), 7.0 / 8 * 4e-3 + 7e-5);
  EXPECT_DOUBLE_EQ(costs.seconds({}, {.type = ActionType::GatherTied}), 7.0 / 8 * 4e-3 + 7e-5);
  EXPECT_DOUBLE_EQ(costs.seconds({}, {.type = ActionType::GatherTiedRows}), 6e-5);
  EXPECT_DOUBLE_EQ(costs.seconds({}, {.type = ActionType::ExchangeData}), 7.0 / 8 * 8e-3 + 7e-5);
  EXPECT_DOUBLE_EQ(costs.seconds({}, {.type = ActionType::Agree}), 6e-5);
}

TEST(ProfileCosts, DivideTheUpdateWhereItIsSharded) {
  GeneratorOptions options{.depth = 1, .num_micro_batches = 1, .num_replicas = 2, .stage_layers = {4}};
  const auto update_seconds = [&options] {
    const Schedule schedule = pipeline(options);
    const ProfileCosts costs = bert_costs(schedule, kBertBase, {.update_seconds_per_layer = 0.5});
    return costs.seconds({}, StageLayers(schedule.problem).whole(ActionType::Update, {}));
  };
  EXPECT_DOUBLE_EQ(update_seconds(), 2);
  options.sharding = Sharding::Optimizer;
  EXPECT_DOUBLE_EQ(update_seconds(), 1);
}

TEST(ProfileCosts, RefuseWhatMakesNoSense) {
  Schedule schedule = pipeline({.stage_layers = {1}});
  EXPECT_THROW(ProfileCosts(schedule, kBertBase, {.communication = {.bytes_per_second = 0}}),
               base::UserError);
  EXPECT_THROW(ProfileCosts(schedule, kBertBase, {.communication = {.latency_seconds = -1}}),
               base::UserError);
  test::expect_user_error(
      [&] {
        ProfileCosts(schedule, kBertBase,
                     {.communication = {.boundary_bytes = std::numeric_limits<double>::infinity()}});
      },
      "the bytes between two stages must be finite and not negative: inf");
  EXPECT_THROW(ProfileCosts(schedule, kBertBase, {.input_gradient_share = 1.5}), base::UserError);
  schedule.problem.num_factors = 5;
  EXPECT_THROW(bert_costs(schedule, kBertBase), base::UserError);
}

TEST(ProfileCosts, OfALayerWithoutMapsHaveNoSecondOrderWork) {
  const Schedule schedule = pipeline({.stage_layers = {1}});
  const ProfileCosts costs(schedule, kBertBase);
  const StageLayers layers(schedule.problem);
  EXPECT_DOUBLE_EQ(costs.seconds({}, layers.whole(ActionType::Forward, {})), kBertBase.forward_seconds);
  EXPECT_THROW(costs.seconds({}, of_map(ActionType::Invert, {}, 0)), base::InternalError);
  EXPECT_THROW(costs.seconds({}, layers.whole(ActionType::Precondition, {})), base::InternalError);
}

}  // namespace
}  // namespace plenum::schedule

#include "plenum/plan/step_costs.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/memory/schedule_shard.h"
#include "plenum/plan/action_ops.h"
#include "plenum/plan/make_op.h"
#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/generate/data_parallel.h"
#include "plenum/schedule/generate/gpipe.h"
#include "plenum/schedule/generate/single.h"
#include "plenum/schedule/simulate/simulate.h"

#include "tests/plan/plan_fixture.h"
#include "tests/support/modern_encoder.h"

namespace plenum::plan {
namespace {

using schedule::Action;
using schedule::ActionType;
using schedule::Lane;
using schedule::LayerId;
using schedule::MicroBatchId;
using schedule::Rank;
using schedule::Schedule;
using schedule::Sharding;
using schedule::StageId;
using test::small_cluster;

StepWork even_work(std::size_t num_micro_batches) {
  return {.micro_batches = std::vector<MicroBatchWork>(num_micro_batches, test::micro_batch_of(4, 60, 80))};
}

StepCosts costs_of(const Schedule& schedule, const Cluster& cluster, StepCostOptions options = {}) {
  if (options.model.layers.empty()) options.model = test::planned_bert();
  const std::size_t num_micro_batches = schedule.problem.num_micro_batches;
  return StepCosts(schedule, std::move(options), even_work(num_micro_batches), cluster);
}

std::vector<Action> actions_of(const Schedule& schedule, std::size_t rank, Lane lane, ActionType type) {
  std::vector<Action> found;
  for (const Action& action : schedule.ranks[rank].lane(lane).actions()) {
    if (action.type == type) found.push_back(action);
  }
  return found;
}

/// The parts of all actions of a type on a rank.
ActionParts sum_of(const StepCosts& costs, const Schedule& schedule, std::size_t rank, ActionType type) {
  ActionParts sum;
  for (const Action& action : actions_of(schedule, rank, schedule::traits_of(type).lane, type))
    sum += costs.parts(Rank::at(rank), action);
  return sum;
}

Schedule replicas(schedule::GeneratorOptions options) {
  options.stage_layers = {4};
  return schedule::generate_data_parallel(options);
}

Schedule pipeline(std::size_t depth, std::vector<std::uint16_t> stage_layers,
                  std::size_t num_micro_batches = 3) {
  return schedule::generate_gpipe({.depth = depth,
                                   .num_micro_batches = num_micro_batches,
                                   .stage_layers = std::move(stage_layers),
                                   .has_tied_parameters = true});
}

TEST(StepCosts, KnowEveryActionOfEverySchedule) {
  const Cluster cluster = small_cluster();
  std::set<ActionType> seen;
  for (const Schedule& schedule : test::all_schedules()) {
    const StepCosts costs(schedule, {.model = test::planned_bert(), .update = UpdateRule::Lamb},
                          test::uneven_work(schedule.problem.num_micro_batches), cluster);
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      for (const schedule::LaneProgram& lane : schedule.ranks[rank].lanes) {
        for (const Action& action : lane.actions()) {
          const ActionParts parts = costs.parts(Rank::at(rank), action);
          for (const double part : {parts.device.compute, parts.device.memory, parts.device.launch,
                                    parts.link.latency, parts.link.bandwidth})
            EXPECT_TRUE(part >= 0 && std::isfinite(part)) << schedule.name;
          EXPECT_EQ(costs.seconds(Rank::at(rank), action), parts.total());
          EXPECT_LE(costs.parts_without_padding(Rank::at(rank), action).total(), parts.total() + 1e-12);
          if (parts.total() > 0) seen.insert(action.type);
        }
      }
    }
    EXPECT_GT(schedule::simulate(schedule, costs).step_seconds, cluster.step_overhead_seconds);
  }
  for (const schedule::ActionTraits& traits : schedule::all_action_traits()) {
    const bool is_free = schedule::is_receive(traits.type) || traits.type == ActionType::ExchangeData ||
                         traits.type == ActionType::AccumulateFactor ||
                         traits.type == ActionType::InverseRoot;
    EXPECT_EQ(seen.contains(traits.type), !is_free) << traits.name;
  }
}

TEST(StepCosts, OfAPassAreThoseOfItsOperations) {
  const Cluster cluster = small_cluster();
  const Schedule schedule = schedule::generate_single({.num_micro_batches = 2, .stage_layers = {4}});
  const StepCosts costs = costs_of(schedule, cluster);
  const describe::ModelDescription model = test::planned_bert();
  const ActionOps ops(model, tensor::Device::Cpu, schedule::Recomputation::None);
  const ComputedWork work = computed_work(even_work(1).micro_batches[0], model, tensor::Device::Cpu);
  const auto seconds_of = [&](Pass pass, Gradients gradients) {
    std::vector<Op> all = ops.embedding(pass, work, gradients).ops;
    for (std::size_t layer = 0; layer < 4; ++layer) {
      const std::vector<Op> own = ops.layer(layer, pass, work, gradients).ops;
      all.insert(all.end(), own.begin(), own.end());
    }
    const std::vector<Op> heads = ops.heads(pass, work, gradients).ops;
    all.insert(all.end(), heads.begin(), heads.end());
    double seconds = 0;
    for (const Op& op : all) seconds += cluster.device.seconds(op).total();
    return seconds;
  };
  const std::vector<Action> forwards = actions_of(schedule, 0, Lane::Compute, ActionType::Forward);
  const std::vector<Action> backwards = actions_of(schedule, 0, Lane::Compute, ActionType::Backward);
  EXPECT_NEAR(costs.seconds({}, forwards[0]), seconds_of(Pass::Forward, Gradients::Overwritten), 1e-12);
  // The first backward of a step overwrites, the second adds.
  EXPECT_NEAR(costs.seconds({}, backwards[0]), seconds_of(Pass::Backward, Gradients::Overwritten), 1e-12);
  EXPECT_NEAR(costs.seconds({}, backwards[1]), seconds_of(Pass::Backward, Gradients::AddedTo), 1e-12);
  EXPECT_GT(costs.seconds({}, backwards[1]), costs.seconds({}, backwards[0]));
}

TEST(StepCosts, OfStagesAddUpToThoseOfTheModel) {
  const Cluster cluster = small_cluster();
  const Schedule whole = schedule::generate_single({.num_micro_batches = 1, .stage_layers = {4}});
  const Schedule cut = pipeline(3, {1, 1, 2}, 1);
  const auto forward = [&](const Schedule& schedule) {
    const StepCosts costs = costs_of(schedule, cluster);
    double sum = 0;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
      sum += sum_of(costs, schedule, rank, ActionType::Forward).total();
    return sum;
  };
  EXPECT_NEAR(forward(cut), forward(whole), 1e-12);
}

TEST(StepCosts, OfAnEmptyMicroBatchAreNothing) {
  const Cluster cluster = small_cluster();
  const Schedule schedule = pipeline(2, {2, 2});
  StepCosts costs = costs_of(schedule, cluster);
  StepWork work = even_work(3);
  work.micro_batches[1] = {};
  costs.set_work(work);
  for (const Lane lane : {Lane::Compute, Lane::Pipeline}) {
    for (const Action& action : schedule.ranks[0].lane(lane).actions()) {
      if (!schedule::traits_of(action.type).has_micro_batch || schedule::is_receive(action.type)) continue;
      EXPECT_EQ(costs.seconds({}, action) > 0, action.micro_batch.value != 1);
    }
  }
}

TEST(StepCosts, FollowTheWorkOfAnotherStep) {
  const Cluster cluster = small_cluster();
  const Schedule schedule = replicas(
      {.num_micro_batches = 2, .num_replicas = 2, .has_tied_parameters = true, .has_tied_halves = true});
  StepCosts costs = costs_of(schedule, cluster);
  const double before = schedule::simulate(schedule, costs).step_seconds;
  const double rows_before = sum_of(costs, schedule, 0, ActionType::ReduceTied).total();
  costs.set_work({.micro_batches = std::vector<MicroBatchWork>(4, test::micro_batch_of(16, 60, 80))});
  EXPECT_GT(schedule::simulate(schedule, costs).step_seconds, 2 * before);
  EXPECT_GT(sum_of(costs, schedule, 0, ActionType::ReduceTied).total(), rows_before);
  costs.set_work(even_work(4));
  EXPECT_EQ(schedule::simulate(schedule, costs).step_seconds, before);
}

TEST(StepCosts, CountPadding) {
  const Cluster cluster = small_cluster();
  const Schedule schedule = schedule::generate_single({.num_micro_batches = 1, .stage_layers = {4}});
  StepCosts costs = costs_of(schedule, cluster);
  const Action forward = actions_of(schedule, 0, Lane::Compute, ActionType::Forward).front();
  const double padded = costs.seconds({}, forward);
  const double without = costs.parts_without_padding({}, forward).total();
  EXPECT_LT(without, 0.9 * padded);
  costs.set_work({.micro_batches = {test::micro_batch_of(4, 60)}});
  EXPECT_DOUBLE_EQ(costs.seconds({}, forward), without);
  EXPECT_DOUBLE_EQ(costs.parts_without_padding({}, forward).total(), without);
}

TEST(StepCosts, ReduceEveryParameterOnce) {
  const describe::ParameterTable table(test::planned_bert());
  const auto N = static_cast<double>(table.num_elements());
  const Cluster cluster = small_cluster();
  const double bandwidth = cluster.within_node.bytes_per_second;
  for (const std::size_t num_buckets : {1, 2, 4}) {
    const Schedule schedule =
        replicas({.num_micro_batches = 2, .num_replicas = 4, .num_buckets = num_buckets});
    const StepCosts costs = costs_of(schedule, cluster);
    const ActionParts all = sum_of(costs, schedule, 1, ActionType::ReduceGradient);
    EXPECT_NEAR(all.link.bandwidth, 2 * 0.75 * 4 * N / bandwidth, 1e-9);
    EXPECT_NEAR(all.link.latency, static_cast<double>(num_buckets) * 6 * 5e-6, 1e-12);
    EXPECT_EQ(all.device.total(), 0);
    // In two bytes half as much travels, and each rank rounds and widens.
    const StepCosts rounded = costs_of(schedule, cluster, {.reduced_bytes = 2});
    const ActionParts half = sum_of(rounded, schedule, 1, ActionType::ReduceGradient);
    EXPECT_NEAR(half.link.bandwidth, all.link.bandwidth / 2, 1e-9);
    EXPECT_NEAR(half.device.memory, 2 * 6 * N / 1e9 / 0.7, 1e-7);
  }
}

TEST(StepCosts, ReduceTheHalvesOfATiedTableByThemselves) {
  const describe::ParameterTable table(test::planned_bert());
  const double words = 480 * 64;
  const Cluster cluster = small_cluster();
  const auto bandwidth_of = [&](const StepCosts& costs, const Schedule& schedule, ActionType type) {
    return sum_of(costs, schedule, 0, type).link.bandwidth * cluster.within_node.bytes_per_second;
  };
  for (const Sharding sharding : {Sharding::None, Sharding::Optimizer}) {
    const bool is_sharded = sharding == Sharding::Optimizer;
    const Schedule schedule = replicas({.num_micro_batches = 1,
                                        .num_replicas = 4,
                                        .num_buckets = 2,
                                        .sharding = sharding,
                                        .has_tied_parameters = true,
                                        .has_tied_halves = true});
    const StepCosts costs = costs_of(schedule, cluster);
    const double rest = static_cast<double>(table.num_elements()) - words;
    if (is_sharded) {
      EXPECT_NEAR(bandwidth_of(costs, schedule, ActionType::ReduceScatterGradient), 0.75 * 4 * rest, 600);
      EXPECT_NEAR(bandwidth_of(costs, schedule, ActionType::GatherParameters), 0.75 * 4 * rest, 600);
      EXPECT_NEAR(bandwidth_of(costs, schedule, ActionType::ReduceScatterTiedOutput), 0.75 * 4 * words, 1e-3);
      EXPECT_NEAR(bandwidth_of(costs, schedule, ActionType::GatherTied), 0.75 * 4 * words, 1e-3);
    } else {
      EXPECT_NEAR(bandwidth_of(costs, schedule, ActionType::ReduceGradient), 1.5 * 4 * rest, 600);
      EXPECT_NEAR(bandwidth_of(costs, schedule, ActionType::ReduceTiedOutput), 1.5 * 4 * words, 1e-3);
    }
    // A bit for each word of each rank, and of the rows that 960 tokens read less than all.
    EXPECT_NEAR(bandwidth_of(costs, schedule, ActionType::GatherTiedRows), 0.75 * 4 * 480 / 8, 1e-3);
    const double rows = bandwidth_of(costs, schedule, ActionType::ReduceTied) / (1.5 * 4 * 64);
    EXPECT_GT(rows, 100);
    EXPECT_LT(rows, 400);
  }
}

TEST(StepCosts, OfAPipelineReduceTheWholeTableBetweenItsEnds) {
  const Cluster cluster = small_cluster();
  const Schedule schedule = pipeline(4, {1, 1, 1, 1});
  const StepCosts costs = costs_of(schedule, cluster);
  const double bytes = 480 * 64 * 4;
  EXPECT_NEAR(sum_of(costs, schedule, 0, ActionType::ReduceTied).link.bandwidth, bytes / 1e8, 1e-9);
  EXPECT_EQ(sum_of(costs, schedule, 1, ActionType::ReduceTied).total(), 0);
}

TEST(StepCosts, OfShardsAddUpToTheWholeUpdate) {
  const Cluster cluster = small_cluster();
  const describe::ParameterTable table(test::planned_bert());
  const auto bytes = [](const ActionParts& parts) { return parts.device.memory * 0.7 * 1e9; };
  const Schedule alone = schedule::generate_single({.num_micro_batches = 1, .stage_layers = {4}});
  const double whole = bytes(sum_of(costs_of(alone, cluster), alone, 0, ActionType::Update));
  EXPECT_NEAR(whole, 28.0 * static_cast<double>(table.num_elements()), 1);
  for (const Sharding sharding : {Sharding::Optimizer, Sharding::Gradients, Sharding::Parameters}) {
    const Schedule schedule =
        replicas({.num_micro_batches = 1, .num_replicas = 3, .num_buckets = 2, .sharding = sharding});
    const StepCosts costs = costs_of(schedule, cluster);
    double sum = 0;
    double squares = 0;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const double own = bytes(sum_of(costs, schedule, rank, ActionType::Update));
      const auto shard = memory::schedule_shard(table, schedule, Rank::at(rank));
      EXPECT_NEAR(own, 28.0 * static_cast<double>(shard.num_elements()), 1);
      sum += own;
      squares += bytes(sum_of(costs, schedule, rank, ActionType::SquareGradient));
    }
    EXPECT_NEAR(sum, whole, 1);
    EXPECT_NEAR(squares, 4.0 * static_cast<double>(table.num_elements()), 1);
  }
  // Replicas count a part of the squares each and update everything.
  const Schedule schedule = replicas({.num_micro_batches = 1, .num_replicas = 4});
  const StepCosts costs = costs_of(schedule, cluster);
  EXPECT_NEAR(bytes(sum_of(costs, schedule, 3, ActionType::Update)), whole, 1);
  EXPECT_NEAR(bytes(sum_of(costs, schedule, 3, ActionType::SquareGradient)),
              static_cast<double>(table.num_elements()), 1);
}

TEST(StepCosts, OfStagesUpdateTheTiedTableOnBothEnds) {
  const Cluster cluster = small_cluster();
  const describe::ParameterTable table(test::planned_bert());
  const Schedule schedule = pipeline(2, {2, 2});
  const StepCosts costs = costs_of(schedule, cluster);
  double bytes = 0;
  for (const std::size_t rank : {0, 1})
    bytes += sum_of(costs, schedule, rank, ActionType::Update).device.memory * 0.7 * 1e9;
  EXPECT_NEAR(bytes, 28.0 * (static_cast<double>(table.num_elements()) + 480 * 64), 1);
}

TEST(StepCosts, OfLambInHalvesAreThoseOfTheWhole) {
  const Cluster cluster = small_cluster();
  const Schedule halves = replicas(
      {.num_micro_batches = 1, .num_replicas = 2, .sharding = Sharding::Optimizer, .has_tensor_norms = true});
  const StepCosts of_halves = costs_of(halves, cluster, {.update = UpdateRule::Lamb});
  const Schedule alone = schedule::generate_single({.num_micro_batches = 1, .stage_layers = {4}});
  const StepCosts of_whole = costs_of(alone, cluster, {.update = UpdateRule::Lamb});
  double sum = 0;
  for (const std::size_t rank : {0, 1}) {
    sum += sum_of(of_halves, halves, rank, ActionType::UpdateMoments).total();
    sum += sum_of(of_halves, halves, rank, ActionType::Update).total();
  }
  EXPECT_NEAR(sum, sum_of(of_whole, alone, 0, ActionType::Update).total(), 1e-9);
  const describe::ParameterTable table(test::planned_bert());
  EXPECT_NEAR(sum_of(of_halves, halves, 0, ActionType::ReduceTensorNorms).link.bandwidth,
              static_cast<double>(table.parameters().size()) * 16 / 1e8, 1e-12);
}

TEST(StepCosts, SendTheRowsThatAreComputed) {
  Cluster cluster = small_cluster();
  const Schedule schedule = pipeline(2, {2, 2});
  const Action send = actions_of(schedule, 0, Lane::Pipeline, ActionType::SendActivation).front();
  EXPECT_DOUBLE_EQ(costs_of(schedule, cluster).seconds({}, send), 4 * 80 * 64 * 4 / 1e8);
  EXPECT_DOUBLE_EQ(costs_of(schedule, cluster).latency_seconds({0}, {1}), 5e-6);
  EXPECT_EQ(costs_of(schedule, cluster).parts({}, send).link.latency, 0);
  // On a GPU in two bytes, and rows are a multiple of 256.
  cluster.kind = tensor::Device::Cuda;
  EXPECT_DOUBLE_EQ(costs_of(schedule, cluster).seconds({}, send), 512 * 64 * 2 / 1e8);
}

TEST(StepCosts, GoOverTheLinkBetweenNodesWhereAnyRankIsOnAnother) {
  Cluster cluster = small_cluster();
  const Schedule schedule = replicas({.num_micro_batches = 1, .num_replicas = 4});
  const auto latency = [&] {
    return sum_of(costs_of(schedule, cluster), schedule, 0, ActionType::ReduceGradient).link.latency;
  };
  EXPECT_DOUBLE_EQ(latency(), 6 * 5e-6);
  cluster.devices_per_node = 3;
  EXPECT_DOUBLE_EQ(latency(), 6 * 10e-6);
  const Schedule stages = pipeline(4, {1, 1, 1, 1});
  const StepCosts costs = costs_of(stages, cluster);
  EXPECT_EQ(costs.latency_seconds({1}, {2}), 5e-6);
  EXPECT_EQ(costs.latency_seconds({2}, {3}), 10e-6);
  EXPECT_EQ(costs.latency_seconds({3}, {2}), 10e-6);
}

TEST(StepCosts, OfSlicesSumWithinActionsAndFillNodes) {
  const Cluster cluster = small_cluster();
  const Schedule schedule = replicas({.num_micro_batches = 1, .num_replicas = 2});
  const auto with_slices = [&](std::size_t size) {
    return costs_of(
        schedule, cluster,
        {.model = describe::tensor_parallel_slice(test::planned_bert(), {.index = 0, .size = size})});
  };
  const ActionParts alone = sum_of(with_slices(1), schedule, 0, ActionType::Forward);
  const ActionParts two = sum_of(with_slices(2), schedule, 0, ActionType::Forward);
  EXPECT_EQ(alone.link.total(), 0);
  EXPECT_LT(two.device.total(), alone.device.total());
  // Two sums for each of four layers, and one behind the lookup of words; a gather of the loss's parts.
  EXPECT_NEAR(two.link.latency, (2 * 4 + 1) * 2 * 5e-6 + 5e-6, 1e-12);
  // Two replicas of two slices are on one node, of four on two.
  EXPECT_DOUBLE_EQ(sum_of(with_slices(2), schedule, 0, ActionType::ReduceGradient).link.latency, 2 * 5e-6);
  EXPECT_DOUBLE_EQ(sum_of(with_slices(4), schedule, 0, ActionType::ReduceGradient).link.latency, 2 * 10e-6);
  // All ranks agree.
  EXPECT_DOUBLE_EQ(sum_of(with_slices(2), schedule, 0, ActionType::Agree).link.latency, 3 * 5e-6);
}

TEST(StepCosts, HaveTheOverheadOfAStepOnce) {
  const Cluster cluster = small_cluster();
  Cluster without = cluster;
  without.step_overhead_seconds = 0;
  for (const Schedule& schedule : {schedule::generate_single({.num_micro_batches = 2, .stage_layers = {4}}),
                                   replicas({.num_micro_batches = 2, .num_replicas = 3})}) {
    EXPECT_NEAR(schedule::simulate(schedule, costs_of(schedule, cluster)).step_seconds -
                    schedule::simulate(schedule, costs_of(schedule, without)).step_seconds,
                3e-4, 1e-12);
  }
}

TEST(StepCosts, OfPiecesAddUpToTheWholeInversion) {
  const Cluster cluster = small_cluster();
  const Schedule schedule = schedule::with_periodic_refresh(pipeline(2, {2, 2}), schedule::KfacFiller(6), 2);
  const StepCosts costs = costs_of(schedule, cluster);
  const std::vector<Action> inversions = actions_of(schedule, 0, Lane::Compute, ActionType::Invert);
  ASSERT_FALSE(inversions.empty());
  Action piece = inversions.front();
  const double whole = costs.seconds({}, piece);
  piece.num_pieces = 4;
  double sum = 0;
  for (; piece.piece < 4; ++piece.piece) sum += costs.seconds({}, piece);
  EXPECT_NEAR(sum, whole, 1e-15);
}

TEST(StepCosts, OfOwnersAddUpToTheWholePreconditioning) {
  const Cluster cluster = small_cluster();
  const auto preconditioning = [&](std::size_t num_replicas) {
    const Schedule schedule = schedule::with_periodic_refresh(
        replicas({.num_micro_batches = 1, .num_replicas = num_replicas}), schedule::KfacFiller(6), 2);
    const StepCosts costs = costs_of(schedule, cluster);
    double sum = 0;
    for (std::size_t rank = 0; rank < num_replicas; ++rank)
      sum += sum_of(costs, schedule, rank, ActionType::Precondition).total();
    return sum;
  };
  EXPECT_NEAR(preconditioning(4), preconditioning(1), 1e-12);
  EXPECT_GT(preconditioning(1), 0);
}

TEST(StepCosts, GatherShardedParametersForEveryPass) {
  const describe::ParameterTable table(test::planned_bert());
  const auto N = static_cast<double>(table.num_elements());
  Cluster cluster = small_cluster();
  const Schedule schedule = replicas(
      {.num_micro_batches = 2, .num_replicas = 4, .num_buckets = 4, .sharding = Sharding::Parameters});
  const auto first_layers = table.elements_of_layers({0}, {1});
  const auto own = static_cast<double>(first_layers.end - first_layers.begin);
  const auto bytes_of = [&](ActionType type) {
    return sum_of(costs_of(schedule, cluster), schedule, 2, type).link.bandwidth * 1e8 / 0.75;
  };
  // What stays for the step once, the others for the first forward; for each backward but the turn's.
  EXPECT_NEAR(bytes_of(ActionType::GatherParameters), 4 * own, 1e-3);
  const auto gathered = [&](ActionType type) {
    double elements = 0;
    for (const Action& action : actions_of(schedule, 2, Lane::DataParallel, type)) {
      const auto range = table.elements_of_layers(action.first_layer, action.end_layer);
      elements += static_cast<double>(range.end - range.begin);
    }
    return elements;
  };
  ASSERT_GT(gathered(ActionType::GatherForward), 0);
  EXPECT_NEAR(bytes_of(ActionType::GatherForward), 4 * gathered(ActionType::GatherForward), 1e-3);
  EXPECT_NEAR(bytes_of(ActionType::GatherBackward), 4 * gathered(ActionType::GatherBackward), 1e-3);
  // Each micro-batch's gradients are reduced in a round of their own.
  EXPECT_NEAR(bytes_of(ActionType::ReduceScatterRound), 2 * 4 * N, 1e-3);
  // A GPU gathers two bytes, and once in a step norms as they are kept.
  cluster.kind = tensor::Device::Cuda;
  double norms = 0;
  for (const describe::Parameter& parameter : table.parameters()) {
    const bool is_norm = parameter.kind == describe::ParameterKind::NormWeight ||
                         parameter.kind == describe::ParameterKind::NormBias;
    if (is_norm && first_layers.begin <= parameter.begin && parameter.begin < first_layers.end)
      norms += static_cast<double>(parameter.num_elements());
  }
  EXPECT_NEAR(bytes_of(ActionType::GatherParameters), 2 * own + 4 * norms, 4 * 4 * 128.0);
  EXPECT_NEAR(bytes_of(ActionType::GatherBackward), 2 * gathered(ActionType::GatherBackward), 1e-3);
}

TEST(StepCosts, CountWhatRanksDoWithWhatTheyExchange) {
  const describe::ParameterTable table(test::planned_bert());
  const auto N = static_cast<double>(table.num_elements());
  const Cluster cluster = small_cluster();
  const auto bytes_of = [&](Sharding sharding, ActionType type, std::size_t reduced_bytes) {
    const Schedule schedule =
        replicas({.num_micro_batches = 3, .num_replicas = 4, .num_buckets = 2, .sharding = sharding});
    const StepCosts costs = costs_of(schedule, cluster, {.reduced_bytes = reduced_bytes});
    return sum_of(costs, schedule, 1, type).device.memory * 0.7 * 1e9;
  };
  // A quarter is copied from the first round and added from two others.
  EXPECT_NEAR(bytes_of(Sharding::Gradients, ActionType::ReduceScatterRound, 4), N / 4 * 4 * (2 + 3 + 3), 1);
  // All is rounded to two bytes, a quarter comes back.
  EXPECT_NEAR(bytes_of(Sharding::Optimizer, ActionType::ReduceScatterGradient, 2), (N + N / 4) * 6, 1);
  EXPECT_EQ(bytes_of(Sharding::Optimizer, ActionType::ReduceScatterGradient, 4), 0);
}

TEST(StepCosts, OverwriteGradientsThatAreReducedAfterEveryMicroBatch) {
  const Cluster cluster = small_cluster();
  for (const Sharding sharding : {Sharding::Optimizer, Sharding::Gradients}) {
    const Schedule schedule = replicas({.num_micro_batches = 2, .num_replicas = 2, .sharding = sharding});
    const StepCosts costs = costs_of(schedule, cluster);
    const std::vector<Action> backwards = actions_of(schedule, 0, Lane::Compute, ActionType::Backward);
    ASSERT_EQ(backwards.size(), 2U);
    const double first = costs.seconds({}, backwards[0]);
    const double second = costs.seconds({}, backwards[1]);
    if (sharding == Sharding::Gradients) {
      EXPECT_EQ(first, second);
    } else {
      EXPECT_LT(first, second);
    }
  }
}

TEST(StepCosts, JoinTheRowsOfATiedTableThatAStepReads) {
  const Cluster cluster = small_cluster();
  const Schedule schedule = replicas(
      {.num_micro_batches = 1, .num_replicas = 4, .has_tied_parameters = true, .has_tied_halves = true});
  const Schedule without = replicas({.num_micro_batches = 1, .num_replicas = 4});
  const auto rows_of = [&](std::size_t num_slices) {
    const auto slice =
        describe::tensor_parallel_slice(test::planned_bert(), {.index = 0, .size = num_slices});
    const StepCosts costs = costs_of(schedule, cluster, {.model = slice});
    const Link& link = num_slices == 1 ? cluster.within_node : cluster.between_nodes;
    const double bytes =
        sum_of(costs, schedule, 0, ActionType::ReduceTied).link.bandwidth * link.bytes_per_second;
    return bytes / (1.5 * 4 * 64);
  };
  // Each slice has its part of the words.
  EXPECT_NEAR(rows_of(2), rows_of(1) / 2, 1e-6);
  const double squares =
      sum_of(costs_of(schedule, cluster), schedule, 0, ActionType::SquareGradient).device.memory -
      sum_of(costs_of(without, cluster), without, 0, ActionType::SquareGradient).device.memory;
  EXPECT_NEAR(squares * 0.7 * 1e9, rows_of(1) * 64 * 3 * 4, 1e-3);
}

TEST(StepCosts, OfSlicesSumTheNormsOfTheirTensors) {
  const Cluster cluster = small_cluster();
  const auto update = [&](std::size_t num_slices) {
    const Schedule schedule = schedule::generate_single(
        {.num_micro_batches = 1, .stage_layers = {4}, .has_tensor_norms = num_slices > 1});
    const auto slice =
        describe::tensor_parallel_slice(test::planned_bert(), {.index = 0, .size = num_slices});
    return sum_of(costs_of(schedule, cluster, {.model = slice, .update = UpdateRule::Lamb}), schedule, 0,
                  ActionType::Update);
  };
  EXPECT_EQ(update(1).link.total(), 0);
  const describe::ParameterTable table(test::planned_bert());
  EXPECT_NEAR(update(2).link.bandwidth, static_cast<double>(table.parameters().size()) * 16 / 1e8, 1e-12);
  EXPECT_LT(update(2).device.total(), 0.6 * update(1).device.total());
}

TEST(StepCosts, ReduceTheMomentsOfEveryInputOnce) {
  const Cluster cluster = small_cluster();
  const Schedule schedule = schedule::with_periodic_refresh(
      replicas({.num_micro_batches = 1, .num_replicas = 2}), schedule::KfacFiller(6), 2);
  const StepCosts costs = costs_of(schedule, cluster);
  // Of each layer inputs of width 64 (three) and 256, outputs of width 64 (five) and 256.
  constexpr double kMoments = 4 * (8.0 * 64 * 64 + 2.0 * 256 * 256);
  EXPECT_NEAR(sum_of(costs, schedule, 0, ActionType::ReduceCurvature).link.bandwidth, 4 * kMoments / 1e8,
              1e-9);
  // In each of two steps half of all weights of maps come from the other rank.
  constexpr double kWeights = 4 * (4.0 * 64 * 64 + 2.0 * 64 * 256);
  EXPECT_NEAR(sum_of(costs, schedule, 0, ActionType::GatherPreconditioned).link.bandwidth,
              2 * 4 * kWeights / 2 / 1e8, 1e-9);
}

TEST(StepCosts, OfAModelThatIsNoBertAddUpOverItsStages) {
  const Cluster cluster = small_cluster();
  const describe::ModelDescription model = test::describe_modern_encoder(
      {.vocabulary = 200, .width = 64, .num_layers = 4, .num_heads = 4, .mlp_width = 96});
  const Schedule whole = schedule::generate_single({.num_micro_batches = 1, .stage_layers = {4}});
  const Schedule cut = pipeline(2, {3, 1}, 1);
  const StepCosts of_whole = costs_of(whole, cluster, {.model = model});
  const StepCosts of_cut = costs_of(cut, cluster, {.model = model});
  const double sum = sum_of(of_cut, cut, 0, ActionType::Forward).total() +
                     sum_of(of_cut, cut, 1, ActionType::Forward).total();
  EXPECT_NEAR(sum, sum_of(of_whole, whole, 0, ActionType::Forward).total(), 1e-12);
  EXPECT_GT(schedule::simulate(cut, of_cut).step_seconds, 0);
}

TEST(StepCosts, RefuseWorkAndClustersThatDoNotFit) {
  const Cluster cluster = small_cluster();
  const Schedule schedule = replicas({.num_micro_batches = 1, .num_replicas = 3});
  EXPECT_THROW(StepCosts(schedule, {.model = test::planned_bert()}, even_work(2), cluster), base::UserError);
  EXPECT_THROW(StepCosts(schedule, {.model = test::planned_bert(5)}, even_work(3), cluster), base::UserError);
  const Schedule lamb = replicas(
      {.num_micro_batches = 1, .num_replicas = 3, .sharding = Sharding::Optimizer, .has_tensor_norms = true});
  EXPECT_THROW(StepCosts(lamb, {.model = test::planned_bert()}, even_work(3), cluster), base::UserError);
  Cluster tiny = cluster;
  tiny.num_nodes = 1;
  tiny.devices_per_node = 2;
  EXPECT_THROW(StepCosts(schedule, {.model = test::planned_bert()}, even_work(3), tiny), base::UserError);
}

}  // namespace
}  // namespace plenum::plan

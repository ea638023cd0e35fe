#include "plenum/plan/step_breakdown.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "plenum/describe/tensor_parallel.h"
#include "plenum/schedule/generate/data_parallel.h"
#include "plenum/schedule/generate/gpipe.h"
#include "plenum/schedule/generate/single.h"

#include "tests/plan/plan_fixture.h"

namespace plenum::plan {
namespace {

using schedule::Schedule;
using schedule::Simulation;
using test::small_cluster;

/// A schedule with costs, simulated and divided.
struct Explained {
  Simulation simulation;
  std::vector<StepBreakdown> ranks;
  StepBreakdown mean;

  Explained(const Schedule& schedule, const StepWork& work, const Cluster& cluster,
            const describe::ModelDescription& model = test::planned_bert()) {
    const UpdateRule update = schedule.problem.has_tensor_norms ? UpdateRule::Lamb : UpdateRule::AdamW;
    const StepCosts costs(schedule, {.model = model, .update = update}, work, cluster);
    simulation = schedule::simulate(schedule, costs);
    ranks = rank_breakdowns(schedule, costs, simulation);
    mean = step_breakdown(schedule, costs, simulation);
  }

  /// Of computations that are no padding.
  static double computed(const StepBreakdown& rank) { return rank.arithmetic + rank.memory + rank.launch; }
};

StepWork alike(std::size_t num_micro_batches, std::int64_t num_sequences = 4) {
  return {.micro_batches =
              std::vector<MicroBatchWork>(num_micro_batches, test::micro_batch_of(num_sequences, 60))};
}

Cluster free_links() {
  Cluster cluster = small_cluster();
  cluster.within_node = cluster.between_nodes = {.latency_seconds = 0, .bytes_per_second = 1e18};
  cluster.step_overhead_seconds = 0;
  return cluster;
}

TEST(StepBreakdown, AddsUpToTheStepOnEveryRankOfEverySchedule) {
  Cluster slow = small_cluster();
  slow.within_node.bytes_per_second = slow.between_nodes.bytes_per_second = 2e6;
  for (const Cluster& cluster : {small_cluster(), slow}) {
    for (const Schedule& schedule : test::all_schedules()) {
      const Explained explained(schedule, test::uneven_work(schedule.problem.num_micro_batches), cluster);
      const double step = explained.simulation.step_seconds;
      EXPECT_NEAR(explained.mean.total(), step, 1e-9 * step) << schedule.name;
      for (const StepBreakdown& rank : explained.ranks) {
        EXPECT_NEAR(rank.total(), step, 1e-9 * step) << schedule.name;
        for (const double part :
             {rank.arithmetic, rank.memory, rank.launch, rank.communication_latency,
              rank.communication_bandwidth, rank.waiting, rank.bubbles, rank.padding, rank.optimizer})
          EXPECT_GE(part, -1e-9 * step) << schedule.name;
      }
    }
  }
}

TEST(StepBreakdown, OfOneRankHasNeitherCommunicationNorWaiting) {
  const Schedule schedule = schedule::generate_single({.num_micro_batches = 2, .stage_layers = {4}});
  const StepBreakdown mean = Explained(schedule, alike(2), small_cluster()).mean;
  EXPECT_EQ(mean.communication_latency + mean.communication_bandwidth + mean.waiting + mean.padding, 0);
  EXPECT_NEAR(mean.bubbles, 0, 1e-12);
  EXPECT_GT(mean.arithmetic, 0);
  EXPECT_GT(mean.memory, 0);
  EXPECT_GT(mean.optimizer, 0);
  // The overhead of the step is a launch.
  EXPECT_GE(mean.launch, small_cluster().step_overhead_seconds);
}

TEST(StepBreakdown, HasTheBubbleOfAPipelineOfEqualStages) {
  const Schedule schedule = schedule::generate_gpipe(
      {.depth = 4, .num_micro_batches = 4, .stage_layers = {1, 1, 1, 1}, .has_tied_parameters = true});
  const Explained explained(schedule, alike(4), free_links());
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_NEAR(explained.ranks[rank].bubbles, explained.simulation.bubble_seconds[rank], 1e-9);
    EXPECT_NEAR(explained.ranks[rank].waiting, 0, 1e-12);
  }
  EXPECT_GT(explained.mean.bubbles, 0.2 * explained.simulation.step_seconds);
}

TEST(StepBreakdown, WaitsForTheReplicaThatHasMoreToDo) {
  const Schedule schedule =
      schedule::generate_data_parallel({.num_micro_batches = 1, .num_replicas = 3, .stage_layers = {4}});
  StepWork work = alike(3);
  work.micro_batches[1] = test::micro_batch_of(9, 60);
  const Explained explained(schedule, work, free_links());
  const double slowest = Explained::computed(explained.ranks[1]);
  EXPECT_NEAR(explained.ranks[1].waiting, 0, 1e-9);
  for (const std::size_t rank : {0, 2}) {
    EXPECT_NEAR(explained.ranks[rank].waiting, slowest - Explained::computed(explained.ranks[rank]), 1e-9);
    EXPECT_NEAR(explained.ranks[rank].bubbles, 0, 1e-12);
  }
}

TEST(StepBreakdown, TellsWaitingForAReplicaFromTheBubblesOfAPipeline) {
  const Schedule schedule = schedule::generate_gpipe({.depth = 2,
                                                      .num_micro_batches = 3,
                                                      .num_replicas = 2,
                                                      .stage_layers = {2, 2},
                                                      .has_tied_parameters = true});
  const Explained alone(schedule, alike(6), free_links());
  EXPECT_NEAR(alone.mean.waiting, 0, 1e-9);
  StepWork work = alike(6);
  for (std::size_t i = 3; i < 6; ++i) work.micro_batches[i] = test::micro_batch_of(7, 60);
  const Explained uneven(schedule, work, free_links());
  // The first replica has its own bubbles, and waits for the second.
  for (const std::size_t rank : {0, 1}) EXPECT_GT(uneven.ranks[rank].waiting, 0.1 * uneven.mean.total());
  for (const std::size_t rank : {2, 3}) {
    EXPECT_NEAR(uneven.ranks[rank].waiting, 0, 1e-9);
    EXPECT_GT(uneven.ranks[rank].bubbles, 0);
  }
}

TEST(StepBreakdown, ExposesTheCommunicationThatNothingHides) {
  // One bucket: its reduction begins when backward has ended.
  Cluster cluster = free_links();
  cluster.within_node = {.latency_seconds = 1e-3, .bytes_per_second = 1e8};
  const Schedule schedule =
      schedule::generate_data_parallel({.num_micro_batches = 1, .num_replicas = 2, .stage_layers = {4}});
  const StepBreakdown mean = Explained(schedule, alike(2), cluster).mean;
  const describe::ParameterTable table(test::planned_bert());
  // The reduction's two messages, and one of the agreement.
  EXPECT_NEAR(mean.communication_latency, 3e-3, 1e-9);
  EXPECT_NEAR(mean.communication_bandwidth, (4.0 * static_cast<double>(table.num_elements()) + 9 * 8) / 1e8,
              1e-9);
  EXPECT_NEAR(mean.waiting + mean.bubbles, 0, 1e-9);
}

TEST(StepBreakdown, ExposesWhatTheNextStepWaitsFor) {
  // Behind the update weights are gathered, which the first forward of the next step needs.
  Cluster cluster = free_links();
  cluster.within_node.bytes_per_second = 1e8;
  const Schedule schedule = schedule::generate_data_parallel({.num_micro_batches = 1,
                                                              .num_replicas = 2,
                                                              .stage_layers = {4},
                                                              .sharding = schedule::Sharding::Optimizer});
  const Explained explained(schedule, alike(2), cluster);
  const describe::ParameterTable table(test::planned_bert());
  const double bytes = 2 * 0.5 * 4 * static_cast<double>(table.num_elements()) + 9 * 8;
  for (const StepBreakdown& rank : explained.ranks) {
    EXPECT_NEAR(rank.communication_bandwidth, bytes / 1e8, 1e-9);
    EXPECT_NEAR(rank.waiting + rank.bubbles, 0, 1e-5);
  }
}

TEST(StepBreakdown, DoesNotCountCommunicationThatHidesBehindBackward) {
  Cluster cluster = free_links();
  cluster.within_node = {.latency_seconds = 0, .bytes_per_second = 2e9};
  const auto exposed = [&](std::size_t num_buckets) {
    const Schedule schedule = schedule::generate_data_parallel(
        {.num_micro_batches = 1, .num_replicas = 2, .stage_layers = {4}, .num_buckets = num_buckets});
    const Explained explained(schedule, alike(2, 16), cluster);
    return explained.mean.communication_bandwidth;
  };
  EXPECT_LT(exposed(4), 0.6 * exposed(1));
}

TEST(StepBreakdown, HasSumsOverSlicesAsCommunication) {
  Cluster cluster = free_links();
  cluster.within_node = {.latency_seconds = 1e-3, .bytes_per_second = 1e18};
  const Schedule schedule = schedule::generate_single({.num_micro_batches = 1, .stage_layers = {4}});
  const auto slice = describe::tensor_parallel_slice(test::planned_bert(), {.index = 0, .size = 2});
  const StepBreakdown mean = Explained(schedule, alike(1), cluster, slice).mean;
  // All-reduces of two messages: two for each layer forward and backward, one for words, one in the head's
  // backward; gathers of one: the loss's parts and the agreement.
  EXPECT_NEAR(mean.communication_latency, ((2 * 4 + 1 + 2 * 4 + 1) * 2 + 1 + 1) * 1e-3, 1e-9);
}

TEST(StepBreakdown, HasWhatPaddingCosts) {
  const Schedule schedule = schedule::generate_single({.num_micro_batches = 2, .stage_layers = {4}});
  StepWork padded = alike(2);
  for (MicroBatchWork& micro_batch : padded.micro_batches) micro_batch.rows = 2 * micro_batch.rows;
  const Explained with(schedule, padded, small_cluster());
  const Explained without(schedule, alike(2), small_cluster());
  EXPECT_NEAR(with.mean.padding, with.simulation.step_seconds - without.simulation.step_seconds, 1e-12);
  EXPECT_NEAR(with.mean.arithmetic, without.mean.arithmetic, 1e-12);
  EXPECT_EQ(without.mean.padding, 0);
}

}  // namespace
}  // namespace plenum::plan

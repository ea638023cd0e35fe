#include "plenum/plan/simulated_step.h"

#include <gtest/gtest.h>

#include "plenum/describe/parameter_table.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/memory/schedule_shard.h"
#include "plenum/plan/search.h"
#include "plenum/plan/strategy_memory.h"
#include "plenum/schedule/simulate/simulate.h"

#include "tests/plan/made_up_run.h"

namespace plenum::plan {
namespace {

using test::MadeUp;
using test::MadeUpSteps;

double seconds_of_all(const Candidate& candidate, const StrategyRequest& request, const StepSampler& sampler,
                      const std::vector<StepWork>& steps, const Cluster& cluster) {
  const schedule::Schedule whole = step_schedule(candidate.strategy, request.model, sampler.typical(),
                                                 candidate.limits.micro_batches_per_replica);
  double sum = 0;
  for (const StepWork& step : steps) {
    const StepCosts costs(whole, cost_options(candidate.strategy, request.model), step, cluster);
    sum += schedule::simulate(whole, costs).step_seconds;
  }
  return sum / static_cast<double>(steps.size());
}

struct MadeUpRun {
  MadeUpRun(std::uint64_t seed, bool is_uniform) : made_up(seed) {
    const tensor::Device device = made_up.coin() ? tensor::Device::Cpu : tensor::Device::Cuda;
    cluster = made_up.cluster(device);
    // Replicas of one kind lie alike on their nodes.
    cluster.devices_per_node = 1;
    cluster.num_nodes = 64;
    request = {.model = made_up.model(), .num_ranks = made_up.one_of<std::size_t>({6, 8, 12})};
    sampler.emplace(
        MadeUpSteps::Shape{.items = 48, .max_length = 32, .is_uniform = is_uniform, .seed = seed});
    for (Candidate& candidate : enumerate(request, test::small_grid(), *sampler, cluster)) {
      if (candidate.strategy.replicas > 2) candidates.push_back(std::move(candidate));
    }
  }

  MadeUp made_up;
  Cluster cluster;
  StrategyRequest request;
  std::optional<MadeUpSteps> sampler;
  std::vector<Candidate> candidates;
};

TEST(SimulatedStep, OfAFewReplicasIsThatOfAllWhereTheyHaveTheSameWork) {
  std::size_t num_compared = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    MadeUpRun run(seed, true);
    for (int i = 0; i < 6 && !run.candidates.empty(); ++i) {
      const Candidate candidate = run.made_up.one_of(run.candidates);
      if (48 % candidate.strategy.replicas != 0) continue;
      const auto steps =
          run.sampler->sample(candidate.strategy.replicas, candidate.strategy.micro_batches, 1);
      const Plan plan =
          plan_of(candidate, run.request, *run.sampler, run.cluster, {.num_steps = 1, .most_replicas = 2});
      const double all = seconds_of_all(candidate, run.request, *run.sampler, steps, run.cluster);
      // Shards are alike but for 128 elements.
      const bool is_sharded = candidate.strategy.sharding != schedule::Sharding::None;
      EXPECT_NEAR(plan.step.seconds, all, all * (is_sharded ? 1e-3 : 1e-9))
          << "seed " << seed << ": " << strategy_text(candidate.strategy);
      ++num_compared;
    }
  }
  EXPECT_GT(num_compared, 60U);
}

TEST(SimulatedStep, OfTheBusiestReplicasIsNeverMoreThanThatOfAllAndNearlyAsMuch) {
  double few = 0;
  double all = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    MadeUpRun run(seed, false);
    for (int i = 0; i < 6 && !run.candidates.empty(); ++i) {
      const Candidate candidate = run.made_up.one_of(run.candidates);
      const auto steps =
          busiest_first(run.sampler->sample(candidate.strategy.replicas, candidate.strategy.micro_batches, 2),
                        candidate.strategy.replicas, run.request.model);
      const Plan plan = plan_of(candidate, run.request, *run.sampler, run.cluster, {.num_steps = 2});
      const double of_all = seconds_of_all(candidate, run.request, *run.sampler, steps, run.cluster);
      EXPECT_LE(plan.step.seconds, of_all * (1 + 1e-9))
          << "seed " << seed << ": " << strategy_text(candidate.strategy);
      few += plan.step.seconds / of_all;
      all += 1;
    }
  }
  EXPECT_GT(few / all, 0.99);
}

TEST(SimulatedStep, PutsTheReplicasWithTheMostWorkFirst) {
  const describe::ModelDescription model = MadeUp(1).model();
  const auto micro_batch = [](std::int64_t tokens) {
    return MicroBatchWork{.rows = tokens, .work = {.tokens = tokens, .sequences = 1, .labels = {1}}};
  };
  const std::vector<StepWork> sorted = busiest_first(
      {{.micro_batches =
            {micro_batch(1), micro_batch(2), micro_batch(5), micro_batch(4), micro_batch(3), {}}}},
      3, model);
  std::vector<std::int64_t> rows;
  for (const MicroBatchWork& work : sorted.front().micro_batches) rows.push_back(work.rows);
  EXPECT_EQ(rows, (std::vector<std::int64_t>{5, 4, 1, 2, 3, 0}));
}

/// What the engine plans for a rank of the whole schedule.
std::size_t planned_bytes(const Candidate& candidate, const StrategyRequest& request,
                          const schedule::Schedule& whole, std::size_t rank) {
  const std::size_t slices = candidate.strategy.slices;
  const schedule::Rank place = schedule::Rank::at(rank / slices);
  const describe::ParameterTable table(
      describe::tensor_parallel_slice(request.model, {.index = rank % slices, .size = slices}),
      memory::held_layers(whole, place));
  return memory::plan_memory(table, whole, place,
                             memory_request(candidate.strategy, candidate.limits.capacity, 2))
      .num_bytes();
}

TEST(StrategyMemory, IsWhatTheEnginePlansForEveryRankOfTheWholeSchedule) {
  std::size_t num_compared = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    MadeUpRun run(seed, false);
    for (int i = 0; i < 4 && !run.candidates.empty(); ++i) {
      const Candidate candidate = run.made_up.one_of(run.candidates);
      const Strategy& strategy = candidate.strategy;
      const std::size_t of_replica = candidate.limits.micro_batches_per_replica;
      const AbridgedSchedule abridged =
          abridged_schedule(strategy, run.request.model, run.sampler->typical(), of_replica, 2);
      const schedule::Schedule whole =
          step_schedule(strategy, run.request.model, run.sampler->typical(), of_replica);
      const std::vector<tensor::MemoryLayout> arenas = rank_arenas(
          strategy, run.request.model, abridged, {.capacity = candidate.limits.capacity, .num_threads = 2});
      ASSERT_EQ(arenas.size(), strategy.slices * strategy.depth);
      for (std::size_t rank = 0; rank < arenas.size(); ++rank) {
        EXPECT_EQ(arenas[rank].num_bytes(), planned_bytes(candidate, run.request, whole, rank))
            << "seed " << seed << ", rank " << rank << ": " << strategy_text(strategy);
      }
      ++num_compared;
    }
  }
  EXPECT_GT(num_compared, 60U);
}

}  // namespace
}  // namespace plenum::plan

#include "plenum/plan/simulated_step.h"

#include <gtest/gtest.h>

#include "plenum/describe/parameter_table.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/memory/schedule_shard.h"
#include "plenum/plan/planned_schedule.h"
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
  MadeUpRun(std::uint64_t seed, bool is_uniform, const MatrixWork& matrices = {}) : made_up(seed) {
    const tensor::Device device = made_up.coin() ? tensor::Device::Cpu : tensor::Device::Cuda;
    cluster = made_up.cluster(device);
    // Replicas of one kind lie alike on their nodes.
    cluster.devices_per_node = 1;
    cluster.num_nodes = 64;
    request = {
        .model = made_up.model(), .num_ranks = made_up.one_of<std::size_t>({6, 8, 12}), .matrices = matrices};
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

const std::vector<MatrixWork>& kinds_of_matrix_work() {
  static const std::vector<MatrixWork> kinds = {
      {.kind = schedule::Preconditioner::Kfac, .every = 3},
      {.kind = schedule::Preconditioner::Kfac, .fill = BubbleFill::Deferred},
      {.kind = schedule::Preconditioner::Kfac, .fill = BubbleFill::Fresh},
      {.kind = schedule::Preconditioner::Muon},
      {.kind = schedule::Preconditioner::Shampoo, .every = 4, .soap_limit = 128},
      {.kind = schedule::Preconditioner::Shampoo, .every = 4, .fill = BubbleFill::Deferred}};
  return kinds;
}

TEST(SimulatedStep, WithWorkOnMatricesTakesLongerThanWithout) {
  for (const MatrixWork& work : kinds_of_matrix_work()) {
    std::size_t num_compared = 0;
    std::size_t num_filled = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      MadeUpRun run(seed, false, work);
      if (run.cluster.kind == tensor::Device::Cuda && work.fill != BubbleFill::Off) continue;
      for (int i = 0; i < 4 && !run.candidates.empty(); ++i) {
        const Candidate candidate = run.made_up.one_of(run.candidates);
        const SearchOptions options{.num_steps = 2};
        const Plan plan = plan_of(candidate, run.request, *run.sampler, run.cluster, options);
        const MatrixOverhead overhead =
            matrix_overhead(plan, run.request, *run.sampler, run.cluster, options).value();
        EXPECT_GT(overhead.seconds, 0) << "seed " << seed << ": " << strategy_text(candidate.strategy);
        if (work.kind == schedule::Preconditioner::Kfac)
          EXPECT_GT(overhead.bytes, 0) << "seed " << seed << ": " << strategy_text(candidate.strategy);
        const bool is_refreshed = work.kind != schedule::Preconditioner::Muon;
        EXPECT_EQ(plan.refresh_steps > 0, is_refreshed);
        num_filled += plan.fills_bubbles ? 1 : 0;
        if (!plan.fills_bubbles && is_refreshed)
          EXPECT_EQ(plan.refresh_steps, static_cast<double>(work.every));
        ++num_compared;
      }
    }
    EXPECT_GT(num_compared, 10U);
    EXPECT_EQ(num_filled > 0, work.fill != BubbleFill::Off) << static_cast<int>(work.kind);
  }
}

TEST(PlannedSchedule, OfAFewReplicasComputesWhatAllDoInTheMean) {
  MadeUp made_up(5);
  Cluster cluster = made_up.cluster(tensor::Device::Cpu);
  cluster.devices_per_node = 1;
  cluster.num_nodes = 64;
  const describe::ModelDescription model = describe::describe_bert(
      {.vocabulary = 100, .width = 64, .num_layers = 8, .num_heads = 1, .mlp_width = 256});
  const MadeUpSteps sampler({.items = 64, .max_length = 16, .is_uniform = true});
  for (const MatrixWork& work : kinds_of_matrix_work()) {
    if (work.fill != BubbleFill::Off) continue;
    const Strategy strategy{.replicas = 24, .micro_batches = {.tokens = 1024}, .matrices = work};
    const StepLimits limits = sampler.limits(24, strategy.micro_batches);
    const StepWork step = sampler.sample(24, strategy.micro_batches, 1).front();
    const auto schedule_of = [&](std::size_t most_replicas) {
      return planned_schedule(strategy, model, sampler.typical(), limits, step, cluster, most_replicas).steps;
    };
    const AbridgedSchedule few = schedule_of(4);
    const AbridgedSchedule all = schedule_of(24);
    ASSERT_EQ(few.written.ranks.size(), 16U);
    ASSERT_EQ(all.written.ranks.size(), 24U);
    const StepCosts costs_of_few(few.whole, cost_options(strategy, model), step, cluster);
    const StepCosts costs_of_all(all.whole, cost_options(strategy, model), step, cluster);
    const auto seconds = [](const AbridgedSchedule& steps, const StepCosts& costs) {
      double sum = 0;
      for (std::size_t rank = 0; rank < steps.written.ranks.size(); ++rank)
        for (const schedule::Action& action :
             steps.written.ranks[rank].lane(schedule::Lane::Compute).actions())
          sum += costs.seconds(schedule::Rank::at(rank), action);
      return sum / static_cast<double>(steps.written.ranks.size());
    };
    const double of_all = seconds(all, costs_of_all);
    EXPECT_NEAR(seconds(few, costs_of_few), of_all, 0.02 * of_all) << static_cast<int>(work.kind);
  }
}

TEST(StrategyMemory, IsWhatTheEnginePlansForEveryRankWithWorkOnMatrices) {
  for (const MatrixWork& work : kinds_of_matrix_work()) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      MadeUpRun run(seed, false, work);
      if (run.cluster.kind == tensor::Device::Cuda) continue;
      run.cluster.devices_per_node = 64;  // ranks of one process
      for (int i = 0; i < 3 && !run.candidates.empty(); ++i) {
        const Candidate candidate = run.made_up.one_of(run.candidates);
        const Strategy& strategy = candidate.strategy;
        const StepWork step = run.sampler->sample(strategy.replicas, strategy.micro_batches, 1).front();
        const AbridgedSchedule planned = planned_schedule(strategy, run.request.model, run.sampler->typical(),
                                                          candidate.limits, step, run.cluster, 2)
                                             .steps;
        ASSERT_EQ(planned.written.ranks.size(), strategy.num_ranks());
        const StrategyMemory memory = strategy_memory(
            strategy, run.request.model, planned,
            {.capacity = candidate.limits.capacity, .num_threads = 2, .processes = Processes::EachRank});
        std::size_t most = 0;
        for (std::size_t rank = 0; rank < strategy.num_ranks(); ++rank)
          most = std::max(most, planned_bytes(candidate, run.request, planned.written, rank));
        EXPECT_EQ(planned_bytes(candidate, run.request, planned.written, memory.peak_rank), most)
            << "seed " << seed << ": " << strategy_text(strategy);
        EXPECT_GE(memory.peak_bytes(), most);
      }
    }
  }
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

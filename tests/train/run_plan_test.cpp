#include "plenum/train/run_plan.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "plenum/data/batches/packing_plan_file.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/memory/schedule_shard.h"
#include "plenum/packing/lpfhp.h"
#include "plenum/plan/strategy_memory.h"
#include "plenum/tensor/cuda_device.h"
#include "plenum/train/model_parts.h"
#include "plenum/train/prepared_data.h"
#include "plenum/train/run_schedule.h"
#include "plenum/train/starting_model.h"
#include "plenum/train/whole_model.h"

#include "tests/support/bytes_for.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/on_gpu.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

class RunPlanTest : public TrainingTest {
 protected:
  std::string memory_error(const RunOptions& given, std::uint64_t available_bytes) const {
    const PreparedData dataset(dataset_);
    const RunPlan plan(given, dataset, starting_model(given.model, dataset));
    return test::user_error_of([&] { plan.require_memory(available_bytes); });
  }
  std::uint64_t planned_bytes(const RunOptions& given) const {
    const PreparedData dataset(dataset_);
    return RunPlan(given, dataset, starting_model(given.model, dataset)).memory().planned_bytes;
  }

  /// With heads as wide as a GPU wants them.
  RunOptions gpu_options() const {
    RunOptions given = options("run");
    given.run.device = tensor::Device::Cuda;
    given.model.width = 128;
    return given;
  }
  static RunOptions with_tokens(RunOptions given, std::int64_t micro_batch_tokens) {
    given.data.micro_batch_tokens = micro_batch_tokens;
    return given;
  }
  /// The --micro-batch-tokens that the refusal says would fit; 0, and a failure, if it names none.
  std::int64_t named_tokens(const RunOptions& given, std::uint64_t available_bytes) const {
    const std::string error = memory_error(given, available_bytes);
    std::smatch match;
    if (std::regex_search(error, match, std::regex("; --micro-batch-tokens ([0-9]+) would fit")))
      return std::stoll(match[1]);
    ADD_FAILURE() << error;
    return 0;
  }
  void expect_that_it_names_the_most_that_fits(RunOptions given) const;
};

void RunPlanTest::expect_that_it_names_the_most_that_fits(RunOptions given) const {
  constexpr std::int64_t kWanted = 1000;
  given.data.global_batch = "100";
  given.data.micro_batch_tokens = kWanted;
  const std::uint64_t available = planned_bytes(with_tokens(given, 300));
  ASSERT_LT(available, planned_bytes(given));
  const std::int64_t fits = named_tokens(given, available);
  ASSERT_GE(fits, 300);
  EXPECT_EQ(memory_error(with_tokens(given, fits), available), "no error");
  for (std::int64_t more = fits + 1; more <= kWanted; ++more) {
    EXPECT_GT(planned_bytes(with_tokens(given, more)), available) << more;
  }
}

/// What the planner says of a run before there is one.
plan::StrategyMemory planner_memory(const RunPlan& plan, plan::Processes processes,
                                    std::optional<batch::Capacity> evaluated) {
  const describe::ModelDescription model = describe::describe_bert(plan.program().model);
  return plan::strategy_memory(
      plan.strategy(), model,
      plan::abridged_schedule(plan.strategy(), model, typical_work(plan.batches().sequences(), {}),
                              plan.batches().micro_batches_per_rank(), 4),
      {.capacity = plan.batches().capacity(),
       .num_threads = plan.program().num_threads,
       .processes = processes,
       .evaluated = evaluated});
}

/// What is on the way while the process of a rank gets the model, counted from what ranks send.
std::size_t bytes_on_the_way(const RunPlan& plan) {
  const bool is_sharded = plan.schedule().problem.sharding == schedule::Sharding::Parameters;
  const Mesh& mesh = plan.mesh();
  const ModelParts parts(plan.program().model, mesh, plan.schedule());
  std::vector<std::int64_t> rounds;
  for (std::size_t i = 0; i < (is_sharded ? mesh.num_ranks() : mesh.ranks_per_replica()); ++i) {
    const base::Rank rank = base::Rank::at(i);
    const auto holding =
        is_sharded ? WholeModel::Holding::of_shard(
                         rank, memory::schedule_shard(parts.part(rank), plan.schedule(), mesh.place_of(rank)))
                   : WholeModel::Holding::of_part(parts, rank);
    rounds.resize(holding.rounds.size());
    for (std::size_t round = 0; round < rounds.size(); ++round)
      rounds[round] += holding.rounds[round].elements.end - holding.rounds[round].elements.begin;
  }
  return sizeof(float) * static_cast<std::size_t>(*std::ranges::max_element(rounds));
}

struct Layout {
  std::string name;
  std::int64_t ranks = 1;
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  schedule::Sharding shard = schedule::Sharding::None;
};

RunOptions with(RunOptions given, const Layout& layout) {
  given.run.ranks = layout.ranks;
  given.run.tp = layout.tp;
  given.run.pp = layout.pp;
  given.run.shard = layout.shard;
  given.run.threads = layout.ranks;
  given.model.layers = 2;
  if (layout.pp > 1) {
    given.data.micro_batch_tokens.reset();
    given.data.micro_batches = 4;
  }
  return given;
}

const Layout kLayouts[] = {
    {"one rank"},
    {"replicas", 4},
    {"slices", 4, 2},
    {"pipeline", 4, 1, 2},
    {"slices in a pipeline", 4, 2, 2},
    {"sharded optimizer", 4, 1, 1, schedule::Sharding::Optimizer},
    {"sharded parameters", 4, 1, 1, schedule::Sharding::Parameters},
};

TEST_F(RunPlanTest, TakesWhatThePlannerSaysInOneProcessAndInMany) {
  const PreparedData dataset(dataset_);
  for (const Layout& layout : kLayouts) {
    const RunOptions given = with(options("run"), layout);
    const describe::ModelConfig model = starting_model(given.model, dataset);
    const RunPlan alone(given, dataset, model);
    ASSERT_TRUE(alone.held_out()) << layout.name;
    const batch::Capacity evaluated = alone.held_out()->capacity();
    const MemoryReport together = planner_memory(alone, plan::Processes::One, evaluated).peak;
    EXPECT_EQ(alone.memory().planned_bytes, together.planned_bytes) << layout.name;
    for (const tensor::MemoryLayout::Line& line : together.lines)
      EXPECT_EQ(test::bytes_for(alone.memory(), line.purpose), line.bytes)
          << layout.name << ": " << line.purpose;
    if (layout.ranks == 1) continue;

    const plan::StrategyMemory planned = planner_memory(alone, plan::Processes::EachRank, evaluated);
    std::size_t most = 0;
    std::size_t total = 0;
    for (std::int64_t rank = 0; rank < layout.ranks; ++rank) {
      const RunPlan own(given, dataset, model, base::Rank::at(static_cast<std::size_t>(rank)));
      const MemoryReport memory = own.memory();
      most = std::max(most, memory.planned_bytes);
      total += memory.most_bytes();
      const std::size_t whole = test::bytes_for(memory, "whole weights");
      if (whole == 0) continue;
      const describe::ParameterTable table(describe::describe_bert(model));
      EXPECT_EQ(whole, sizeof(float) * static_cast<std::size_t>(table.num_elements()) + bytes_on_the_way(own))
          << layout.name;
    }
    EXPECT_EQ(most, planned.peak.planned_bytes) << layout.name;
    EXPECT_EQ(total, planned.total_bytes) << layout.name;
  }
}

TEST_F(RunPlanTest, CountsHeldOutDataAndWholeWeightsWhereTheyAreNeededAlone) {
  const PreparedData dataset(dataset_);
  for (const Layout& layout : kLayouts) {
    const RunOptions given = with(options("run"), layout);
    const RunPlan plan(given, dataset, starting_model(given.model, dataset));
    const bool is_together = layout.tp * layout.pp > 1 || layout.shard == schedule::Sharding::Parameters;
    EXPECT_EQ(test::bytes_for(plan.memory(), "whole weights") > 0, is_together) << layout.name;
    EXPECT_GT(test::bytes_for(plan.memory(), "evaluation"), 0U) << layout.name;
    EXPECT_EQ(test::bytes_for(planner_memory(plan, plan::Processes::One, std::nullopt).peak, "evaluation"),
              0U);
  }
}

TEST_F(RunPlanTest, NamesTheLargestMicroBatchThatFits) {
  expect_that_it_names_the_most_that_fits(options("run"));
}

TEST_F(RunPlanTest, NamesTheLargestMicroBatchThatFitsIntoAGpu) {
  if (!tensor::is_cuda_built()) GTEST_SKIP() << *tensor::cuda_obstacle();
  RunOptions given = gpu_options();
  expect_that_it_names_the_most_that_fits(given);

  // Fewer tokens are more micro-batches, which are staged at the same time: they may take more memory.
  given.data.global_batch = "100";
  const std::uint64_t available = planned_bytes(with_tokens(given, 240));
  ASSERT_GT(planned_bytes(with_tokens(given, 120)), available);
  EXPECT_EQ(named_tokens(with_tokens(given, 1000), available), 256);

  // No time goes into what is refused, however large.
  given.model.layers = 1 << 12;
  given.model.mlp_width = 1 << 22;
  EXPECT_THAT(memory_error(given, 1 << 30), testing::HasSubstr("no --micro-batch-tokens would fit"));
}

using RunPlanOnGpu = test::OnGpu<RunPlanTest>;

TEST_F(RunPlanOnGpu, WhatItNamesTrainsWithinTheMemory) {
  // What the driver and the libraries load with the first step is theirs, not the run's.
  run(with_tokens(gpu_options(), 300));
  RunOptions given = gpu_options();
  given.run.directory = directory_ / "within";
  given.run.steps = {3, optim::DurationUnit::Steps};
  given.run.threads = std::nullopt;
  given.model.layers = 1;
  given.model.width = 2048;
  given.model.heads = 32;
  given.model.mlp_width = 8192;
  given.data.global_batch = "100";
  given.data.micro_batch_tokens = 2400;
  const std::uint64_t available = planned_bytes(with_tokens(given, 600));
  ASSERT_GT(planned_bytes(given), available + available / 20);
  const TrainingResult result = run(with_tokens(given, named_tokens(given, available)));
  EXPECT_EQ(result.end, TrainingResult::End::Finished);
  EXPECT_EQ(observer_.steps.size(), 3U);
  // To the percent within which a run takes what was planned.
  EXPECT_LE(result.used_bytes, available + available / 100);
}

TEST_F(RunPlanTest, LooksForTheLargestMicroBatchWithThePackingPlanItHas) {
  const PreparedData dataset(dataset_);
  RunOptions given = with_tokens(options("run"), 240);
  given.data.layout = data::Layout::Packed;
  given.data.packing_plan = directory_.write(
      "plan.json", data::print_packing_plan(packing::pack_lpfhp(
                       {.histogram = dataset.training().histogram(), .capacity = 24, .depth = 24})));
  const std::uint64_t available = planned_bytes(with_tokens(given, 48));
  const RunPlan plan(given, dataset, starting_model(given.model, dataset));
  std::filesystem::remove(given.data.packing_plan);
  EXPECT_THAT(test::user_error_of([&] { plan.require_memory(available); }),
              testing::HasSubstr("--micro-batch-tokens 71 would fit"));
}

TEST_F(RunPlanTest, HasIntervalsBySteps) {
  RunOptions given = options("run", 100);
  given.checkpoint.every = {0.25, optim::DurationUnit::Run};
  given.evaluation.every = optim::Duration{0, optim::DurationUnit::Steps};
  const PreparedData dataset(dataset_);
  const RunPlan plan(given, dataset, starting_model(given.model, dataset));
  EXPECT_EQ(plan.checkpoint_every(), (Interval{.steps = 25}));
  EXPECT_EQ(plan.evaluate_every(), Interval{});
}

TEST_F(RunPlanTest, HasIntervalsByTheClock) {
  RunOptions given = options("run", 100);
  given.checkpoint.every = {90, optim::DurationUnit::Seconds};
  given.evaluation.every = optim::Duration{0, optim::DurationUnit::Seconds};
  const PreparedData dataset(dataset_);
  const RunPlan plan(given, dataset, starting_model(given.model, dataset));
  EXPECT_EQ(plan.checkpoint_every(), (Interval{.steps = 0, .seconds = 90}));
  EXPECT_EQ(plan.evaluate_every(), Interval{});
}

TEST_F(RunPlanTest, EvaluatesTenTimesIfNotToldOtherwise) {
  RunOptions given = options("run", 1000);
  given.evaluation.every.reset();
  given.evaluation.sequences = 1;
  const PreparedData dataset(dataset_);
  const describe::ModelConfig model = starting_model(given.model, dataset);
  EXPECT_EQ(RunPlan(given, dataset, model).evaluate_every(), (Interval{.steps = 100, .seconds = 600}));
  // Where a run ends must not depend on how fast it is.
  given.evaluation.stop_when_worse = 3;
  EXPECT_EQ(RunPlan(given, dataset, model).evaluate_every(), (Interval{.steps = 100}));
}

TEST_F(RunPlanTest, EvaluatesForATwentiethOfTheTimeAtMostIfNotToldOtherwise) {
  RunOptions given = options("run", 1000);
  given.evaluation.every.reset();
  given.evaluation.sequences = 0;
  given.data.global_batch = "1";
  given.data.micro_batch_tokens.reset();
  const PreparedData dataset(dataset_);
  const RunPlan plan(given, dataset, starting_model(given.model, dataset));
  const auto held_out = static_cast<double>(dataset.held_out()->histogram().num_tokens());
  const double steps = 20 * held_out / 3 / plan.batches().expected_tokens_per_step();
  ASSERT_GT(steps, 100);
  ASSERT_LT(steps, 1000);
  EXPECT_EQ(plan.evaluate_every().steps, static_cast<std::uint64_t>(std::ceil(steps)));
}

TEST_F(RunPlanTest, RefusesToStopWhenWorseWhereNothingIsHeldOut) {
  RunOptions given = options("run");
  given.evaluation.stop_when_worse = 2;
  data::PrepareOptions prepared;
  prepared.inputs = {directory_.write("all.txt", learnable_text(7, 20))};
  prepared.output = directory_ / "all";
  prepared.vocab_path = directory_.write("all-vocab.txt", data::letter_vocabulary());
  prepared.sequences.max_length = 24;
  prepared.threads = 1;
  base::SilentProgress silent;
  data::prepare(prepared, silent);
  const PreparedData dataset(prepared.output);
  test::expect_user_error([&] { RunPlan(given, dataset, starting_model(given.model, dataset)); },
                          "--stop-when-worse 2 needs held-out data");
}

TEST_F(RunPlanTest, SaysWhenNoMicroBatchFits) {
  EXPECT_THAT(memory_error(options("run"), 1000), testing::HasSubstr("no --micro-batch-tokens would fit"));
}

TEST_F(RunPlanTest, NamesTheGpuWhoseMemoryIsShort) {
  if (!tensor::is_cuda_built()) GTEST_SKIP() << *tensor::cuda_obstacle();
  RunOptions given = gpu_options();
  EXPECT_THAT(memory_error(given, 1000), testing::HasSubstr("and the GPU has 1.0 kB left; no "
                                                            "--micro-batch-tokens would fit: train a "
                                                            "smaller model, and --recompute full"));
}

TEST_F(RunPlanTest, RefusesShapesThatAGpuHasNoKernelsFor) {
  if (!tensor::is_cuda_built()) GTEST_SKIP() << *tensor::cuda_obstacle();
  RunOptions wide = gpu_options();
  wide.model.width = 8192;
  wide.model.heads = 64;
  EXPECT_THAT(memory_error(wide, 1), testing::HasSubstr("on the GPU a model has a width of at most 4096"));
  RunOptions odd = gpu_options();
  odd.model.mlp_width = 260;
  EXPECT_THAT(memory_error(odd, 1), testing::HasSubstr("the width of the MLP must be a multiple of 8"));
}

TEST_F(RunPlanTest, CountsEvaluationOnTheGpuToo) {
  if (!tensor::is_cuda_built()) GTEST_SKIP() << *tensor::cuda_obstacle();
  RunOptions given = gpu_options();
  const PreparedData dataset(dataset_);
  const RunPlan plan(given, dataset, starting_model(given.model, dataset));
  const std::size_t training =
      pipeline::BertProgram::plan_memory(plan.schedule(), schedule::Rank{0}, plan.program()).num_bytes();
  const MemoryReport memory = plan.memory();
  EXPECT_EQ(memory.device, tensor::Device::Cuda);
  EXPECT_EQ(memory.lines.back().purpose, "evaluation");
  EXPECT_EQ(memory.planned_bytes, training + memory.lines.back().bytes);
}

TEST_F(RunPlanTest, CountsDurationsInEpochs) {
  RunOptions given = options("run");
  given.run.steps = {3, optim::DurationUnit::Epochs};
  given.checkpoint.every = {0.5, optim::DurationUnit::Run};
  const PreparedData dataset(dataset_);
  const RunPlan plan(given, dataset, starting_model(given.model, dataset));
  EXPECT_EQ(plan.num_steps(), 3 * plan.batches().steps_per_epoch());
  EXPECT_EQ(plan.checkpoint_every().steps, (plan.num_steps() + 1) / 2);
}

}  // namespace
}  // namespace plenum::train

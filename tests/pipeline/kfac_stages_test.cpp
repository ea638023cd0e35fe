// K-FAC in pipelines: outside bubbles and in them, the losses of one rank.

#include <gtest/gtest.h>

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/on_one_rank.h"
#include "plenum/schedule/fill/periodic_refresh.h"
#include "plenum/schedule/generate/generator.h"

#include "tests/pipeline/staged_run.h"
#include "tests/support/constant_costs.h"
#include "tests/support/test_sequences.h"

namespace plenum::pipeline {
namespace {

using schedule::ActionType;
using schedule::Schedule;

constexpr std::size_t kNumMaps = 6;
constexpr std::uint64_t kNumSteps = 8;
constexpr std::size_t kMicroBatches = 4;  ///< over all replicas

describe::ModelConfig model_of(std::int64_t num_layers) {
  return {.vocabulary = 61,
          .width = 16,
          .num_layers = num_layers,
          .num_heads = 2,
          .mlp_width = 24,
          .max_positions = 16,
          .hidden_dropout = 0.1,
          .attention_dropout = 0.1,
          .has_next_sentence = true};
}

/// Micro-batches of different sizes.
batch::StepBatch batch_of(std::uint64_t step) {
  const std::vector<test::TestSequence> sequences = test::random_sequences(13, 16, 61, 40 + step);
  std::vector<std::vector<test::TestSequence>> parts(kMicroBatches);
  for (std::size_t i = 0; i < sequences.size(); ++i) parts[i * i % kMicroBatches].push_back(sequences[i]);
  parts[2].swap(parts[1]);
  batch::StepBatch batch{.step = step, .epoch = 1, .global = {}, .global_rows = {}, .micro_batches = {}};
  for (const auto& part : parts) batch.global += batch.micro_batches.emplace_back(test::lay_out(part)).work();
  return batch;
}

std::vector<double> losses_of(const Schedule& schedule) {
  schedule::require_checked(schedule);
  std::vector<batch::MicroBatch> all;
  for (std::uint64_t step = 0; step < kNumSteps; ++step) {
    for (batch::MicroBatch& micro_batch : batch_of(step).micro_batches) all.push_back(std::move(micro_batch));
  }
  const auto num_layers = static_cast<std::int64_t>(schedule::StageLayers(schedule.problem).total());
  StagedRun run(schedule, {.model = model_of(num_layers),
                           .capacity = test::capacity_of(all),
                           .optimizer = {.kind = optim::OptimizerKind::Kfac},
                           .seed = 17});
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < kNumSteps; ++step)
    losses.push_back(run.step(batch_of(step), 1e-2).loss());
  return losses;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  for (std::size_t step = 0; step < expected.size(); ++step)
    EXPECT_NEAR(actual[step], expected[step], 1e-4 * expected[step]) << "step " << step;
}

Schedule pipeline_of(const schedule::Generator& generator, std::size_t num_replicas) {
  schedule::GeneratorOptions options{.depth = 2,
                                     .num_micro_batches = kMicroBatches / num_replicas,
                                     .num_replicas = num_replicas,
                                     .stage_layers = {},
                                     .has_tied_parameters = true};
  options.stage_layers.assign(generator.num_stages(options), 1);
  return generator.generate(options);
}

Schedule one_rank(std::size_t num_layers) {
  return schedule::generator_named("single").generate(
      {.num_micro_batches = kMicroBatches, .stage_layers = {static_cast<std::uint16_t>(num_layers)}});
}

TEST(KfacStages, OfEveryPipelineTrainAsOneRankDoes) {
  for (const schedule::Generator& generator : schedule::all_generators()) {
    if (!generator.is_pipeline()) continue;
    for (const std::size_t num_replicas : {1, 2}) {
      SCOPED_TRACE(std::string(generator.name) + ", replicas: " + std::to_string(num_replicas));
      const Schedule pipeline = pipeline_of(generator, num_replicas);
      const std::size_t num_layers = schedule::StageLayers(pipeline.problem).total();
      expect_near(losses_of(with_periodic_refresh(pipeline, schedule::KfacFiller(kNumMaps), 3)),
                  losses_of(with_periodic_refresh(one_rank(num_layers), schedule::KfacFiller(kNumMaps), 3)));
    }
  }
}

TEST(KfacStages, InBubblesTrainAsOneRankWithInversesOfTheSameAge) {
  using enum ActionType;
  const test::ConstantCosts costs({{Forward, 1.0},
                                   {Backward, 2.0},
                                   {InputGradient, 1.0},
                                   {WeightGradient, 1.0},
                                   {CurvatureA, 0.15},
                                   {CurvatureB, 0.15},
                                   {Invert, 0.4},
                                   {Precondition, 0.2}});
  for (const std::string_view name : {"gpipe", "1f1b"}) {
    SCOPED_TRACE(name);
    const Schedule filled =
        fill(pipeline_of(schedule::generator_named(name), 1), schedule::KfacFiller(kNumMaps), costs).schedule;
    EXPECT_GT(filled.problem.staleness, 0);
    expect_near(losses_of(filled), losses_of(on_one_rank(filled)));
  }
}

TEST(KfacStages, InBubblesOfReplicasGiveTheSameLossesTwice) {
  using enum ActionType;
  const test::ConstantCosts costs(
      {{Forward, 1.0}, {Backward, 2.0}, {CurvatureA, 0.3}, {CurvatureB, 0.3}, {Invert, 1.0}});
  const Schedule filled =
      fill(pipeline_of(schedule::generator_named("1f1b"), 2), schedule::KfacFiller(kNumMaps), costs).schedule;
  const std::vector<double> losses = losses_of(filled);
  EXPECT_EQ(losses, losses_of(filled));
  EXPECT_LT(losses.back(), losses.front());
}

}  // namespace
}  // namespace plenum::pipeline

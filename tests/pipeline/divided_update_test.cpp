// Muon's work on matrices, divided over the ranks that hold them: the bytes of ranks that all do all of it.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/fill/muon_filler.h"
#include "plenum/schedule/fill/periodic_refresh.h"
#include "plenum/schedule/generate/generator.h"

#include "tests/pipeline/staged_run.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/test_sequences.h"

namespace plenum::pipeline {
namespace {

using schedule::Schedule;

constexpr std::size_t kNumMaps = 6;
constexpr std::uint64_t kNumSteps = 6;
constexpr std::size_t kMicroBatches = 8;  ///< over all replicas

batch::StepBatch batch_of(std::uint64_t step) {
  const std::vector<test::TestSequence> sequences = test::random_sequences(13, 16, 61, 40 + step);
  std::vector<std::vector<test::TestSequence>> parts(kMicroBatches);
  for (std::size_t i = 0; i < sequences.size(); ++i) parts[i % kMicroBatches].push_back(sequences[i]);
  batch::StepBatch batch{.step = step, .epoch = 1, .global = {}, .global_rows = {}, .micro_batches = {}};
  for (const auto& part : parts) batch.global += batch.micro_batches.emplace_back(test::lay_out(part)).work();
  return batch;
}

BertProgramOptions options_of(const Schedule& schedule, optim::OptimizerKind kind) {
  std::vector<batch::MicroBatch> all;
  for (std::uint64_t step = 0; step < kNumSteps; ++step) {
    for (batch::MicroBatch& micro_batch : batch_of(step).micro_batches) all.push_back(std::move(micro_batch));
  }
  return {.model = {.vocabulary = 61,
                    .width = 16,
                    .num_layers = static_cast<std::int64_t>(schedule::StageLayers(schedule.problem).total()),
                    .num_heads = 2,
                    .mlp_width = 24,
                    .max_positions = 16,
                    .hidden_dropout = 0.1,
                    .attention_dropout = 0.1,
                    .has_next_sentence = true},
          .capacity = test::capacity_of(all),
          .optimizer = {.kind = kind},
          .seed = 17};
}

Schedule pipeline_of(const schedule::Generator& generator, std::size_t num_replicas) {
  schedule::GeneratorOptions options{.depth = generator.is_pipeline() ? 2U : 1U,
                                     .num_micro_batches = kMicroBatches / num_replicas,
                                     .num_replicas = num_replicas,
                                     .stage_layers = {},
                                     .has_tied_parameters = generator.is_pipeline()};
  options.stage_layers.assign(generator.num_stages(options), 2);
  return generator.generate(options);
}

class DividedUpdate : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(OfMuon, DividedUpdate,
                         testing::Values("data-parallel", "gpipe", "1f1b", "interleaved", "chimera", "zb-h1"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(DividedUpdate, HasTheBytesOfAnUndividedOne) {
  for (const std::size_t num_replicas : {1, 2, 4}) {
    SCOPED_TRACE(num_replicas);
    const Schedule undivided = pipeline_of(schedule::generator_named(GetParam()), num_replicas);
    const Schedule divided = with_periodic_refresh(undivided, schedule::MuonFiller(kNumMaps), 1);
    schedule::require_checked(divided);
    const BertProgramOptions options = options_of(undivided, optim::OptimizerKind::Muon);
    StagedRun expected(undivided, options);
    StagedRun actual(divided, options);
    for (std::uint64_t step = 0; step < kNumSteps; ++step) {
      const StepOutcome reference = expected.step(batch_of(step), 1e-2);
      const StepOutcome outcome = actual.step(batch_of(step), 1e-2);
      EXPECT_EQ(outcome.losses, reference.losses) << "step " << step;
      EXPECT_EQ(outcome.gradient_norm, reference.gradient_norm) << "step " << step;
    }
    EXPECT_EQ(actual.weights(), expected.weights());
    for (std::size_t i = 0; i < actual.num_programs(); ++i) {
      const auto moments = [&](StagedRun& run) {
        return run.program(i).buffers().first_moments_S.span<float>();
      };
      EXPECT_TRUE(std::ranges::equal(moments(actual), moments(expected))) << "moments of rank " << i;
    }
  }
}

TEST(DividedUpdates, LeaveWeightsAndMomentsAloneInASkippedStep) {
  const Schedule undivided = pipeline_of(schedule::generator_named("data-parallel"), 2);
  const Schedule divided = with_periodic_refresh(undivided, schedule::MuonFiller(kNumMaps), 1);
  StagedRun run(divided, options_of(divided, optim::OptimizerKind::Muon));
  EXPECT_FALSE(run.step(batch_of(0), 1e-2).is_skipped);
  const std::span<float> weights = run.program(1).buffers().weights_N.span<float>();
  const float weight = std::exchange(weights[5], std::numeric_limits<float>::quiet_NaN());
  const std::vector<float> before(weights.begin(), weights.end());
  EXPECT_TRUE(run.step(batch_of(1), 1e-2).is_skipped);
  for (std::size_t i = 0; i < weights.size(); ++i)
    ASSERT_TRUE(weights[i] == before[i] || (i == 5 && std::isnan(weights[i]))) << i;
  weights[5] = weight;
  EXPECT_FALSE(run.step(batch_of(2), 1e-2).is_skipped);
  EXPECT_EQ(StagedRun::weights_of(run.program(0), run.program(0).parameters()[0]),
            StagedRun::weights_of(run.program(1), run.program(1).parameters()[0]));
}

TEST(DividedUpdates, AreRefusedByOtherOptimizers) {
  const Schedule undivided = pipeline_of(schedule::generator_named("data-parallel"), 2);
  const Schedule divided = with_periodic_refresh(undivided, schedule::MuonFiller(kNumMaps), 1);
  for (const optim::OptimizerKind kind : {optim::OptimizerKind::AdamW, optim::OptimizerKind::Soap}) {
    test::expect_user_error([&] { StagedRun(divided, options_of(divided, kind)); },
                            "has the actions of another optimizer");
  }
}

}  // namespace
}  // namespace plenum::pipeline

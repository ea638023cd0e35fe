// Ranks of one process that divide what they keep on a GPU.

#include <vector>

#include <gtest/gtest.h>

#include "plenum/batch/step_batch.h"
#include "plenum/schedule/generate/data_parallel.h"
#include "plenum/tensor/cuda_device.h"

#include "tests/pipeline/bert_run.h"
#include "tests/pipeline/step_result.h"
#include "tests/support/on_gpu.h"
#include "tests/support/wide_heads.h"

namespace plenum::pipeline {
namespace {

using optim::OptimizerKind;
using plenum::test::capacity_of;
using plenum::test::random_sequences;
using plenum::test::TestSequence;
using schedule::Recomputation;
using schedule::Sharding;

constexpr Sharding kDivisions[] = {Sharding::Optimizer, Sharding::Gradients, Sharding::Parameters};

/// So many layers that some buckets share a place.
describe::ModelConfig deep_model() {
  describe::ModelConfig model = test::wide_heads();
  model.num_layers = 5;
  return model;
}

struct ShardedTraining {
  std::size_t num_ranks = 2;
  Sharding sharding = Sharding::None;
  OptimizerKind optimizer = OptimizerKind::AdamW;
  std::size_t num_micro_batches = 1;  ///< of each rank
  Recomputation recompute = Recomputation::None;
  double clip_norm = 1;

  batch::StepBatch batch(std::uint64_t step) const {
    static const std::vector<TestSequence> all = random_sequences(24, 100, 97, 5);
    return deal_out(step, all, num_ranks * num_micro_batches);
  }
  schedule::Schedule schedule() const {
    return schedule::generate_data_parallel(
        {.num_micro_batches = num_micro_batches,
         .num_replicas = num_ranks,
         .stage_layers = {static_cast<std::uint16_t>(deep_model().num_layers)},
         .num_buckets = static_cast<std::size_t>(deep_model().num_layers),
         .recomputation = recompute,
         .sharding = sharding,
         .has_tensor_norms = optimizer == OptimizerKind::Lamb && sharding != Sharding::None});
  }
  BertProgramOptions options() const {
    return {.model = deep_model(),
            .capacity = capacity_of(batch(0).micro_batches),
            .optimizer = {.kind = optimizer, .clip_norm = clip_norm},
            .seed = 17,
            .device = tensor::Device::Cuda};
  }
  BertRun run() const { return {schedule(), options()}; }
};

using ShardedBertOnGpu = test::OnGpu<>;

TEST_F(ShardedBertOnGpu, WithoutClippingHasTheBytesOfReplicas) {
  constexpr std::uint64_t kSteps = 6;  // what comes again is recorded
  for (const std::size_t num_ranks : {2, 3}) {
    ShardedTraining training{.num_ranks = num_ranks, .clip_norm = 0};
    BertRun expected = training.run();
    std::vector<double> losses;
    for (std::uint64_t step = 0; step < kSteps; ++step)
      losses.push_back(expected.step(training.batch(step)).loss());
    EXPECT_LT(losses.back(), losses.front());
    for (const Sharding sharding : kDivisions) {
      for (const Recomputation recompute : {Recomputation::None, Recomputation::Full}) {
        SCOPED_TRACE(testing::Message() << num_ranks << " ranks, sharding " << static_cast<int>(sharding)
                                        << ", recomputation " << static_cast<int>(recompute));
        training.sharding = sharding;
        training.recompute = recompute;
        BertRun actual = training.run();
        for (std::uint64_t step = 0; step < kSteps; ++step)
          EXPECT_EQ(actual.step(training.batch(step)).loss(), losses[step]) << step;
        EXPECT_TRUE(are_same(actual.weights(), expected.weights()));
      }
    }
    training.recompute = Recomputation::None;
  }
}

TEST_F(ShardedBertOnGpu, SumsTheMicroBatchesOfAStep) {
  for (const OptimizerKind optimizer : {OptimizerKind::AdamW, OptimizerKind::Lamb}) {
    ShardedTraining training{.optimizer = optimizer, .num_micro_batches = 3};
    BertRun expected = training.run();
    std::vector<StepOutcome> outcomes;
    for (std::uint64_t step = 0; step < 4; ++step) outcomes.push_back(expected.step(training.batch(step)));
    for (const Sharding sharding : kDivisions) {
      SCOPED_TRACE(static_cast<int>(sharding));
      training.sharding = sharding;
      BertRun actual = training.run();
      for (std::uint64_t step = 0; step < 4; ++step) {
        const StepOutcome outcome = actual.step(training.batch(step));
        const StepOutcome& other = outcomes[step];
        EXPECT_NEAR(outcome.loss(), other.loss(), test::kBFloat16Loss * other.loss()) << step;
        // The first step sums the same numbers in another order.
        const double band = step == 0 ? 1e-5 : test::kBFloat16Rearranged;
        EXPECT_NEAR(outcome.gradient_norm, other.gradient_norm, band * other.gradient_norm) << step;
      }
    }
    training.sharding = Sharding::None;
  }
}

TEST_F(ShardedBertOnGpu, TakesThePlannedMemoryWithinOnePercent) {
  ShardedTraining training;
  training.run().step(training.batch(0));  // what the driver and the libraries load is theirs
  for (const Sharding sharding : kDivisions) {
    SCOPED_TRACE(static_cast<int>(sharding));
    training.sharding = sharding;
    BertProgramOptions options = training.options();
    options.capacity.rows = 1 << 17;
    const std::size_t free_before = tensor::cuda_free_bytes();
    BertRun run(training.schedule(), options);
    for (std::uint64_t step = 0; step < 6; ++step) run.step(training.batch(step));
    const auto taken = static_cast<double>(free_before - tensor::cuda_free_bytes());
    double planned = 0;
    for (std::size_t rank = 0; rank < training.num_ranks; ++rank) {
      const std::size_t of_rank = run.program(rank).memory().num_bytes();
      EXPECT_EQ(of_rank,
                BertProgram::plan_memory(training.schedule(), schedule::Rank::at(rank), options).num_bytes());
      planned += static_cast<double>(of_rank);
    }
    EXPECT_GT(planned, 1e9);
    EXPECT_NEAR(taken, planned, 0.01 * planned);
  }
}

}  // namespace
}  // namespace plenum::pipeline

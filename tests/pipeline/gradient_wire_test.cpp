// Training whose gradients travel between ranks in bfloat16.

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/pipeline/bert_run.h"
#include "tests/support/expect_user_error.h"

namespace plenum::pipeline {
namespace {

using schedule::Sharding;
using tensor::DType;
using test::TestSequence;

constexpr std::size_t kRanks = 3;

batch::StepBatch batch_of(std::uint64_t step) {
  static const std::vector<TestSequence> all = test::random_sequences(11, 24, 97, 5);
  return deal_out(step, all, kRanks);
}

BertRun run_of(DType reduce_dtype, Sharding sharding = Sharding::None) {
  return {bert_schedule(small_model(0.1), kRanks, 1, schedule::Recomputation::None, sharding,
                        optim::OptimizerKind::AdamW, WordTable::Whole),
          {.model = small_model(0.1),
           .capacity = test::capacity_of(batch_of(0).micro_batches),
           .seed = 17,
           .reduce_dtype = reduce_dtype}};
}

TEST(GradientWire, RoundsWhatRanksSumAndGivesAllTheSame) {
  BertRun exact = run_of(DType::Float32);
  BertRun rounded = run_of(DType::BFloat16);
  exact.step(batch_of(0));
  rounded.step(batch_of(0));
  const std::vector<float> expected = exact.gradients(0);
  const std::vector<float> actual = rounded.gradients(0);
  double square = 0;
  double error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    square += double{expected[i]} * expected[i];
    error += std::pow(double{actual[i]} - expected[i], 2);
  }
  // Every contribution and the sum is rounded by at most 2^-9 of itself.
  EXPECT_GT(error, 0);
  EXPECT_LT(std::sqrt(error / square), 0x1p-7);
  for (std::size_t rank = 1; rank < kRanks; ++rank) {
    EXPECT_EQ(rounded.gradients(rank), actual);
    EXPECT_EQ(rounded.weights(rank), rounded.weights(0));
  }
}

TEST(GradientWire, TrainsShardsAsReplicas) {
  BertRun replicas = run_of(DType::BFloat16);
  BertRun shards = run_of(DType::BFloat16, Sharding::Optimizer);
  for (std::uint64_t step = 0; step < 3; ++step) {
    const StepOutcome expected = replicas.step(batch_of(step));
    const StepOutcome actual = shards.step(batch_of(step));
    EXPECT_NEAR(actual.loss(), expected.loss(), 1e-5 * expected.loss());
    EXPECT_NEAR(actual.gradient_norm, expected.gradient_norm, 1e-5 * expected.gradient_norm);
  }
}

TEST(GradientWire, ChangesTheLossLittle) {
  BertRun exact = run_of(DType::Float32);
  BertRun rounded = run_of(DType::BFloat16);
  for (std::uint64_t step = 0; step < 20; ++step) {
    const double loss = exact.step(batch_of(step)).loss();
    EXPECT_NEAR(rounded.step(batch_of(step)).loss(), loss, 1e-2 * loss) << "step " << step;
  }
}

TEST(GradientWire, IsRefusedWhereGradientsAreSharded) {
  test::expect_user_error([] { run_of(DType::BFloat16, Sharding::Gradients); }, "gradients travel in fp32");
}

}  // namespace
}  // namespace plenum::pipeline

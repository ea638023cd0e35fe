// Several stages, and halves of a backward, on one rank: what of a pipeline needs no other ranks, on both
// devices.

#include <gtest/gtest.h>

#include "plenum/tensor/cuda_device.h"

#include "tests/pipeline/bert_run.h"
#include "tests/pipeline/step_result.h"
#include "tests/support/test_sequences.h"
#include "tests/support/wide_heads.h"

namespace plenum::pipeline {
namespace {

using plenum::test::wide_heads;
using schedule::Recomputation;
using tensor::Device;

constexpr std::size_t kNumMicroBatches = 4;

/// A schedule of one rank for the two layers of the model.
schedule::Schedule schedule_of(std::string_view generator, Recomputation recompute = Recomputation::None) {
  const bool has_stages = schedule::generator_named(generator).has_chunks;
  const std::vector<std::uint16_t> by_stage = {1, 1};
  return schedule::generator_named(generator).generate(
      {.num_micro_batches = kNumMicroBatches,
       .stage_layers = has_stages ? by_stage : std::vector<std::uint16_t>{2},
       .num_chunks = 2,
       .recomputation = recompute,
       .has_tied_parameters = has_stages});
}

batch::StepBatch batch_of(std::uint64_t step) {
  batch::StepBatch batch = deal_out(step, test::random_sequences(9, 200, 97, 5 + step), kNumMicroBatches - 1);
  batch.micro_batches.insert(batch.micro_batches.begin() + 1, test::lay_out({}));
  return batch;
}

BertProgramOptions options_on(Device device) {
  std::vector<batch::MicroBatch> all;
  for (std::uint64_t step = 0; step < 3; ++step) {
    for (batch::MicroBatch& micro_batch : batch_of(step).micro_batches) all.push_back(std::move(micro_batch));
  }
  return {.model = wide_heads(), .capacity = test::capacity_of(all), .seed = 17, .device = device};
}

class StagesOfOneRank : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    const auto obstacle = tensor::cuda_obstacle();
    if (GetParam() == Device::Cuda && obstacle) GTEST_SKIP() << *obstacle;
  }
  /// After three steps, of which the last two may run as recordings.
  StepResult trained(const schedule::Schedule& schedule) {
    BertRun run(schedule, options_on(GetParam()));
    run.step(batch_of(0));
    run.step(batch_of(1));
    return result_of(run, batch_of(2));
  }
};

INSTANTIATE_TEST_SUITE_P(BertStages, StagesOfOneRank, testing::Values(Device::Cpu, Device::Cuda),
                         [](const auto& info) { return info.param == Device::Cpu ? "Cpu" : "Gpu"; });

TEST_P(StagesOfOneRank, HaveTheGradientsOfOneStage) {
  const StepResult expected = trained(schedule_of("single"));
  const StepResult actual = trained(schedule_of("interleaved"));
  expect_in_band(actual, expected, test::kBFloat16Rearranged);
}

TEST_P(StagesOfOneRank, HaveTheSameBytesWhatIsComputedAgain) {
  const StepResult expected = trained(schedule_of("interleaved"));
  for (const Recomputation recompute : {Recomputation::Mlp, Recomputation::Full}) {
    const StepResult actual = trained(schedule_of("interleaved", recompute));
    EXPECT_EQ(actual.outcome.loss(), expected.outcome.loss());
    EXPECT_TRUE(are_same(actual.gradients, expected.gradients));
  }
}

TEST_P(StagesOfOneRank, HaveTheSameBytesWhenBackwardIsSplit) {
  const StepResult expected = trained(schedule_of("single"));
  const StepResult actual = trained(schedule_of("zb-h1"));
  EXPECT_EQ(actual.outcome.loss(), expected.outcome.loss());
  EXPECT_TRUE(are_same(actual.gradients, expected.gradients));
}

}  // namespace
}  // namespace plenum::pipeline

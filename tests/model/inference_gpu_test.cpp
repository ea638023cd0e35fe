#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

#include "plenum/batch/micro_batch.h"
#include "plenum/model/inference.h"

#include "tests/support/bfloat16_band.h"
#include "tests/support/on_gpu.h"
#include "tests/support/task_batches.h"
#include "tests/support/wide_heads.h"

namespace plenum::model {
namespace {

using plenum::test::kBFloat16Logits;
using plenum::test::kBFloat16Loss;
using plenum::test::lay_out;
using plenum::test::random_sequences;
using tensor::Device;

/// The same random model on either device.
class Model {
 public:
  Model(const batch::MicroBatch& largest, Device device, const std::optional<describe::Task>& task = {})
      : inference_(config_of(task), test::capacity_of(largest), 1, device) {
    std::ranges::copy(test::random_weights(inference_.parameters(), test::wide_heads().width),
                      inference_.weights().span<float>().begin());
  }
  BertInference* operator->() { return &inference_; }

 private:
  static describe::ModelConfig config_of(const std::optional<describe::Task>& task) {
    describe::ModelConfig config = test::wide_heads();
    config.task = task;
    return config;
  }

  BertInference inference_;
};

/// As evaluation has them: without what only gradients need.
batch::MicroBatch for_evaluation(batch::MicroBatch batch) {
  batch.by_word = batch.by_position = batch.by_segment = {};
  return batch;
}

using InferenceOnGpu = test::OnGpu<>;

TEST_F(InferenceOnGpu, EvaluatesAsTheCpuDoes) {
  for (const std::int64_t row_length : {0, 200}) {
    const batch::MicroBatch batch = for_evaluation(lay_out(random_sequences(9, 200, 97, 5), row_length));
    Model gpu(batch, Device::Cuda);
    Model cpu(batch, Device::Cpu);
    const EvaluationSums actual = gpu->evaluate(batch);
    const EvaluationSums expected = cpu->evaluate(batch);
    EXPECT_EQ(actual.objectives[0].num_losses, expected.objectives[0].num_losses);
    EXPECT_EQ(actual.objectives[1].num_losses, expected.objectives[1].num_losses);
    EXPECT_NEAR(actual.objectives[0].loss, expected.objectives[0].loss,
                kBFloat16Loss * expected.objectives[0].loss);
    EXPECT_NEAR(actual.objectives[1].loss, expected.objectives[1].loss,
                kBFloat16Loss * expected.objectives[1].loss);
    // Only near ties may be decided otherwise.
    EXPECT_NEAR(static_cast<double>(actual.objectives[0].correct),
                static_cast<double>(expected.objectives[0].correct), 2);
    EXPECT_NEAR(static_cast<double>(actual.objectives[1].correct),
                static_cast<double>(expected.objectives[1].correct), 1);
    EXPECT_EQ(gpu->evaluate(batch).objectives[0].loss, actual.objectives[0].loss);
    RecordProperty("masked_loss",
                   std::to_string(actual.objectives[0].loss / expected.objectives[0].loss - 1));
  }
}

TEST_F(InferenceOnGpu, GivesTheLossAndLogitsOfEveryTaskAsTheCpuDoes) {
  for (const describe::Task& task : test::every_task()) {
    const batch::MicroBatch batch =
        for_evaluation(test::lay_out_task(task, random_sequences(9, 200, 97, 5), 200));
    Model gpu(batch, Device::Cuda, task);
    Model cpu(batch, Device::Cpu, task);
    const ObjectiveSums actual = gpu->evaluate(batch).objectives[0];
    const ObjectiveSums expected = cpu->evaluate(batch).objectives[0];
    EXPECT_NEAR(actual.loss, expected.loss, kBFloat16Loss * expected.loss) << describe::name_of(task.kind);
    EXPECT_EQ(actual.num_losses, expected.num_losses);
    EXPECT_LE(test::relative_distance(gpu->logits(batch), cpu->logits(batch)), kBFloat16Logits)
        << describe::name_of(task.kind);
  }
}

TEST_F(InferenceOnGpu, GivesTheLogitsOfTheCpu) {
  const batch::MicroBatch batch = for_evaluation(lay_out(random_sequences(9, 200, 97, 5)));
  Model gpu(batch, Device::Cuda);
  Model cpu(batch, Device::Cpu);
  const std::vector<float> actual = gpu->logits(batch);
  const std::vector<float> expected = cpu->logits(batch);
  ASSERT_EQ(actual.size(), expected.size());
  const double distance = test::relative_distance(actual, expected);
  EXPECT_LE(distance, kBFloat16Logits);
  RecordProperty("distance", std::to_string(distance));
}

TEST_F(InferenceOnGpu, TakesMicroBatchesOfAnySize) {
  const auto sequences = random_sequences(9, 200, 97, 5);
  const batch::MicroBatch largest = for_evaluation(lay_out(sequences));
  Model gpu(largest, Device::Cuda);
  Model cpu(largest, Device::Cpu);
  EvaluationSums actual;
  EvaluationSums expected;
  for (const std::size_t count : {1, 0, 5, 9}) {
    const batch::MicroBatch batch = for_evaluation(lay_out(std::span(sequences).first(count)));
    actual += gpu->evaluate(batch);
    expected += cpu->evaluate(batch);
  }
  EXPECT_EQ(actual.objectives[0].num_losses, expected.objectives[0].num_losses);
  EXPECT_NEAR(actual.objectives[0].loss, expected.objectives[0].loss,
              kBFloat16Loss * expected.objectives[0].loss);

  batch::MicroBatch unmasked = for_evaluation(lay_out(std::span(sequences).first(2)));
  unmasked.objectives[0].rows.clear();
  unmasked.objectives[0].labels.clear();
  unmasked.objectives[1] = {};
  EXPECT_TRUE(gpu->logits(unmasked).empty());
  EXPECT_EQ(gpu->evaluate(unmasked).objectives[0].loss, 0);
}

TEST_F(InferenceOnGpu, TakesWeightsThatAreWrittenLater) {
  const batch::MicroBatch batch = for_evaluation(lay_out(random_sequences(3, 100, 97, 5)));
  Model gpu(batch, Device::Cuda);
  const double loss = gpu->evaluate(batch).objectives[0].loss;
  std::vector<float> weights = test::random_weights(gpu->parameters(), test::wide_heads().width);
  for (float& weight : weights) weight *= 1.5F;
  std::ranges::copy(weights, gpu->weights().span<float>().begin());
  EXPECT_NE(gpu->evaluate(batch).objectives[0].loss, loss);
}

}  // namespace
}  // namespace plenum::model

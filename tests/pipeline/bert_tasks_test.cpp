// Fine-tuning: a BertProgram trains a model for each kind of task.

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/describe/bert.h"
#include "plenum/describe/objective.h"

#include "tests/ops/tolerance.h"
#include "tests/pipeline/bert_run.h"
#include "tests/reference/bert.h"
#include "tests/support/bfloat16_band.h"
#include "tests/support/on_gpu.h"
#include "tests/support/task_batches.h"

namespace plenum::pipeline {
namespace {

constexpr std::size_t kNumTaskSequences = 12;

/// Deals examples out to micro-batches, unequally.
batch::StepBatch deal_out_task(std::uint64_t step, const describe::Task& task, std::size_t num_micro_batches,
                               std::int32_t max_length = 24) {
  const std::vector<test::TestSequence> sequences =
      test::random_sequences(kNumTaskSequences, max_length, 97, 8);
  const std::size_t of_example = test::sequences_of_example(task);
  std::vector<std::vector<test::TestSequence>> parts(num_micro_batches);
  for (std::size_t i = 0; i < sequences.size(); ++i)
    parts[i / of_example % 3 % num_micro_batches].push_back(sequences[i]);
  batch::StepBatch batch{
      .step = step, .epoch = 1, .global = {}, .global_rows = {}, .work = {}, .micro_batches = {}};
  for (const auto& part : parts)
    batch.global += batch.micro_batches.emplace_back(test::lay_out_task(task, part)).work();
  return batch;
}

/// A run on one rank.
BertRun task_run(const describe::ModelConfig& model, const batch::StepBatch& like,
                 tensor::Device device = tensor::Device::Cpu) {
  return {bert_schedule(model, 1, like.micro_batches.size()),
          {.model = model, .capacity = test::capacity_of(like.micro_batches), .seed = 17, .device = device}};
}

const auto kTaskName = [](const auto& info) {
  std::string name(describe::name_of(info.param.kind));
  std::erase(name, '-');
  return name;
};

class BertTasks : public testing::TestWithParam<describe::Task> {};
INSTANTIATE_TEST_SUITE_P(EveryTask, BertTasks, testing::ValuesIn(test::every_task()), kTaskName);

TEST_P(BertTasks, ReportTheMeanOfTheirLosses) {
  describe::ModelConfig model = small_model(0.1);
  model.task = GetParam();
  const describe::ParameterTable table(describe::describe_bert(model));
  const base::RandomFunction random(17, base::Purpose::Dropout, 1);
  const reference::Bert reference(model, table, random.key());
  const std::vector<float> weights = test::random_weights(table, model.width);
  for (const std::size_t num_micro_batches : {1, 3}) {
    const batch::StepBatch batch = deal_out_task(0, GetParam(), num_micro_batches);
    double sum = 0;
    for (const batch::MicroBatch& micro_batch : batch.micro_batches)
      sum += reference.run({weights.begin(), weights.end()}, micro_batch).task;
    const double expected =
        sum / static_cast<double>(describe::num_losses(describe::task_objective(GetParam()),
                                                       batch.global.labels[0], kNumTaskSequences));
    BertRun run = task_run(model, batch);
    const StepOutcome outcome = run.step(batch);
    EXPECT_FALSE(outcome.is_skipped);
    EXPECT_NEAR(outcome.loss(), expected, ops::kFloat32Relative * expected);
  }
}

TEST_P(BertTasks, AreLearnt) {
  describe::ModelConfig model = small_model(0);
  model.task = GetParam();
  BertRun run = task_run(model, deal_out_task(0, GetParam(), 2));
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < 40; ++step)
    losses.push_back(run.step(deal_out_task(step, GetParam(), 2), 3e-3).loss());
  EXPECT_LT(losses.back(), 0.2 * losses.front());
}

class BertTasksOnGpu : public test::OnGpu<testing::TestWithParam<describe::Task>> {};
INSTANTIATE_TEST_SUITE_P(EveryTask, BertTasksOnGpu, testing::ValuesIn(test::every_task()), kTaskName);

TEST_P(BertTasksOnGpu, TrainAsOnTheCpu) {
  describe::ModelConfig model = test::wide_heads();
  model.task = GetParam();
  const batch::StepBatch batch = deal_out_task(0, GetParam(), 2, 200);
  BertRun on_cpu = task_run(model, batch);
  BertRun on_gpu = task_run(model, batch, tensor::Device::Cuda);
  BertRun again = task_run(model, batch, tensor::Device::Cuda);
  const StepOutcome expected = on_cpu.step(batch);
  const StepOutcome actual = on_gpu.step(batch);
  EXPECT_NEAR(actual.loss(), expected.loss(), test::kBFloat16Loss * expected.loss());
  EXPECT_EQ(again.step(batch).loss(), actual.loss());
  EXPECT_EQ(again.gradients(), on_gpu.gradients());
  std::vector<float> gradients = on_gpu.gradients();
  EXPECT_LE(test::relative_distance(gradients, on_cpu.gradients()), test::kBFloat16Gradient);
}

}  // namespace
}  // namespace plenum::pipeline

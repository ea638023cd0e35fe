// Models that are fine-tuned, one for each kind of task.

#include "plenum/model/task_head.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/batch/group_label.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/model/inference.h"

#include "tests/model/gradient_differences.h"
#include "tests/model/model_run.h"
#include "tests/ops/op_testing.h"
#include "tests/reference/bert.h"
#include "tests/support/task_batches.h"

namespace plenum::model {
namespace {

using plenum::test::capacity_of;
using plenum::test::lay_out_task;
using plenum::test::random_sequences;
using plenum::test::TestSequence;

constexpr std::size_t kNumSequences = 9;  // three examples of as many choices

const DropoutSource kTaskDropout{.is_on = true,
                                 .key = base::RandomFunction(9, base::Purpose::Dropout, 2).key()};

class EveryTask : public testing::TestWithParam<describe::Task> {
 protected:
  static describe::ModelConfig config() {
    return {.vocabulary = 31,
            .width = 20,
            .num_layers = 2,
            .num_heads = 2,
            .mlp_width = 28,
            .max_positions = 12,
            .hidden_dropout = 0.2,
            .attention_dropout = 0.1,
            .task = GetParam()};
  }
  static std::vector<TestSequence> sequences() { return random_sequences(kNumSequences, 12, 31, 2); }
  static batch::MicroBatch unpadded() { return lay_out_task(GetParam(), sequences()); }
  static batch::MicroBatch padded() { return lay_out_task(GetParam(), sequences(), 12); }
  static batch::MicroBatch packed() { return lay_out_task(GetParam(), sequences(), 24, 2); }
};

INSTANTIATE_TEST_SUITE_P(TaskHead, EveryTask, testing::ValuesIn(plenum::test::every_task()),
                         [](const auto& info) {
                           std::string name(describe::name_of(info.param.kind));
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(EveryTask, AgreesWithTheReferenceInLossAndGradients) {
  describe::ModelConfig config = this->config();
  for (const std::optional<double> dropout : {std::optional<double>(), std::optional<double>(0.4)}) {
    config.task->dropout = dropout;
    const batch::MicroBatch batch = packed();
    ModelRun run(config, capacity_of(batch));
    fill_randomly(run);
    std::vector<double> flat(run.weights().begin(), run.weights().end());
    const reference::Bert reference(config, run.table(), kTaskDropout.key);
    const double expected = reference.run(flat, batch).task;
    constexpr float kBefore = 3;
    constexpr float kScale = 0.25;
    std::fill(run.gradients().begin(), run.gradients().end(), kBefore);
    EXPECT_NEAR(run.forward(batch, kTaskDropout).masked, expected, ops::kFloat32Relative * expected);
    run.backward(batch, {.masked = kScale}, kTaskDropout);
    expect_differences(run, kBefore, flat, [&] { return kScale * reference.run(flat, batch).task; });
  }
}

/// What training on micro-batches adds up to.
struct TaskSums {
  double loss = 0;
  std::vector<float> gradients;
};

TaskSums sums_of(const describe::ModelConfig& config, std::span<const batch::MicroBatch> batches) {
  ModelRun run(config, capacity_of(batches));
  fill_randomly(run);
  TaskSums sums;
  for (const batch::MicroBatch& batch : batches) {
    const bool is_first = &batch == &batches.front();
    sums.loss += run.forward(batch, kTaskDropout).masked;
    run.backward(batch, {.masked = 0.25}, kTaskDropout,
                 is_first ? kernels::Accumulate::No : kernels::Accumulate::Yes);
  }
  sums.gradients.assign(run.gradients().begin(), run.gradients().end());
  return sums;
}

/// But for the order in which numbers are added.
void expect_same_sums(const describe::ModelConfig& config, std::span<const batch::MicroBatch> actual,
                      std::span<const batch::MicroBatch> expected) {
  const TaskSums found = sums_of(config, actual);
  const TaskSums wanted = sums_of(config, expected);
  EXPECT_GT(wanted.loss, 0);
  EXPECT_NEAR(found.loss, wanted.loss, 1e-6 * wanted.loss);
  double largest = 0;
  for (const float value : wanted.gradients) largest = std::max(largest, std::abs(double{value}));
  for (std::size_t i = 0; i < wanted.gradients.size(); ++i)
    ASSERT_NEAR(found.gradients[i], wanted.gradients[i], 1e-6 * largest) << "element " << i;
}

TEST_P(EveryTask, HasTheSameLossAndGradientsInEveryLayout) {
  const std::vector<batch::MicroBatch> expected = {unpadded()};
  expect_same_sums(config(), std::vector{padded()}, expected);
  expect_same_sums(config(), std::vector{packed()}, expected);
}

TEST_P(EveryTask, HasTheSameLossAndGradientsInUnequalMicroBatches) {
  const std::vector<TestSequence> all = sequences();
  const std::span<const TestSequence> span(all);
  const std::vector<batch::MicroBatch> parts = {lay_out_task(GetParam(), span.first(3)),
                                                lay_out_task(GetParam(), {}),
                                                lay_out_task(GetParam(), span.subspan(3))};
  expect_same_sums(config(), parts, std::vector{unpadded()});
}

TEST_P(EveryTask, GivesTheSameBytesByHalvesAndWithRecomputation) {
  const batch::MicroBatch batch = unpadded();
  const auto gradients = [&](schedule::Recomputation recompute, BackwardForm form) {
    ModelRun run(config(), capacity_of(batch), recompute, 3, nullptr, form);
    fill_randomly(run);
    run.forward(batch, kTaskDropout);
    run.backward(batch, {}, kTaskDropout);
    return std::vector<float>(run.gradients().begin(), run.gradients().end());
  };
  const std::vector<float> whole = gradients(schedule::Recomputation::None, BackwardForm::Whole);
  EXPECT_EQ(whole, gradients(schedule::Recomputation::None, BackwardForm::Halves));
  EXPECT_EQ(whole, gradients(schedule::Recomputation::Full, BackwardForm::LayerHalves));
}

/// Which label the logits of a row, or of a group, predict: told by the greatest of them, plainly.
std::int64_t correct_by(const describe::Objective& objective, const std::vector<float>& logits,
                        const std::vector<std::int32_t>& labels) {
  using batch::GroupLabel;
  const auto width = static_cast<std::size_t>(objective.num_classes);
  std::int64_t correct = 0;
  if (objective.loss == describe::LossKind::ClassCrossEntropy) {
    for (std::size_t row = 0; row < labels.size(); ++row) {
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row * width);
      correct += std::max_element(begin, begin + static_cast<std::ptrdiff_t>(width)) - begin == labels[row];
    }
  }
  if (objective.loss != describe::LossKind::GroupCrossEntropy) return correct;
  // A group is right unless a row has a greater logit than the answer in some column.
  for (std::size_t first = 0; first < labels.size();) {
    std::size_t end = first + 1;
    while (end < labels.size() && !GroupLabel::is_first(labels[end])) ++end;
    std::size_t num_right = 0;
    for (std::size_t answer = first; answer < end; ++answer) {
      for (std::size_t column = 0; column < width; ++column) {
        if (!GroupLabel::is_answer(labels[answer], static_cast<int>(column))) continue;
        bool is_greatest = true;
        for (std::size_t row = first; row < end; ++row)
          is_greatest = is_greatest && logits[row * width + column] <= logits[answer * width + column];
        num_right += is_greatest;
      }
    }
    correct += num_right == width;
    first = end;
  }
  return correct;
}

TEST_P(EveryTask, IsEvaluatedWithoutDropout) {
  describe::ModelConfig config = this->config();
  std::int64_t num_correct = 0;
  for (const batch::MicroBatch& batch : {unpadded(), padded(), packed()}) {
    ModelRun run(config, capacity_of(batch));
    fill_randomly(run);
    BertInference inference(config, capacity_of(batch), 2);
    std::ranges::copy(run.weights(), inference.weights().span<float>().begin());
    const ObjectiveSums sums = inference.evaluate(batch).objectives[0];
    EXPECT_NEAR(sums.loss, run.forward(batch).masked, 1e-6 * sums.loss);
    const describe::Objective objective = describe::task_objective(*config.task);
    EXPECT_EQ(sums.num_losses, describe::num_losses(objective, batch.work().labels[0], kNumSequences));
    const std::vector<float> logits = inference.logits(batch);
    ASSERT_EQ(logits.size(),
              batch.objective(0).rows.size() * static_cast<std::size_t>(objective.num_classes));
    EXPECT_EQ(sums.correct, correct_by(objective, logits, batch.objective(0).labels));
    EXPECT_LT(sums.correct, sums.num_losses);
    num_correct += sums.correct;
  }
  EXPECT_EQ(num_correct == 0, config.task->kind == describe::TaskKind::Regression) << num_correct;
}

}  // namespace
}  // namespace plenum::model

// Plenum against Hugging Face's BERTs with the head of a task, in float64, from a golden file.

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "plenum/model/inference.h"

#include "tests/model/model_run.h"
#include "tests/ops/op_testing.h"
#include "tests/support/task_golden.h"

namespace plenum::model {
namespace {

using describe::TaskKind;
using plenum::test::capacity_of;
using plenum::test::TaskGolden;

constexpr double kTaskParity = 1e-5;
constexpr double kRoundingOfDoubles = 1e-14;

class TaskParity : public testing::TestWithParam<TaskKind> {
 protected:
  /// The same sequences unpadded and padded.
  std::vector<batch::MicroBatch> layouts() const { return {golden_.micro_batch(), golden_.micro_batch(20)}; }

  /// Whether a softmax takes it back: what is added to all scores of a query, or to all rows of a group.
  static bool is_unseen(const std::string& parameter) {
    if (parameter.ends_with("key.bias")) return true;
    if (GetParam() == TaskKind::MultipleChoice) return parameter == "classifier.bias";
    return GetParam() == TaskKind::QuestionAnswering &&
           (parameter == "qa_outputs.bias" || parameter == "bert.encoder.layer.1.output.LayerNorm.bias");
  }

  TaskGolden golden_{GetParam()};
  double num_losses_ = static_cast<double>(golden_.num_losses());
};

std::string name_of_task(const testing::TestParamInfo<TaskKind>& info) {
  std::string name(describe::name_of(info.param));
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Every, TaskParity,
                         testing::Values(TaskKind::Classification, TaskKind::Regression,
                                         TaskKind::TokenClassification, TaskKind::QuestionAnswering,
                                         TaskKind::MultipleChoice),
                         name_of_task);

TEST_P(TaskParity, LogitsAndLossAgreeWithPyTorch) {
  for (const batch::MicroBatch& batch : layouts()) {
    SCOPED_TRACE(batch.num_rows);
    ModelRun run(golden_.config(), capacity_of(batch));
    golden_.read_weights(run.table(), run.weights());
    const LossSums sums = run.forward(batch);
    EXPECT_NEAR(sums.masked / num_losses_, golden_.loss(), kTaskParity * golden_.loss());
    ops::expect_near(run.kept().heads[0].logits_MW.span<float>(), golden_.logits(), "logits", kTaskParity);
  }
}

TEST_P(TaskParity, EveryGradientAgreesWithPyTorch) {
  for (const batch::MicroBatch& batch : layouts()) {
    SCOPED_TRACE(batch.num_rows);
    ModelRun run(golden_.config(), capacity_of(batch));
    golden_.read_weights(run.table(), run.weights());
    run.forward(batch);
    run.backward(batch, {.masked = 1 / num_losses_});
    for (const describe::Parameter& parameter : run.table().parameters()) {
      const std::vector<double> expected = golden_.gradient(parameter.name);
      const bool is_zero =
          std::ranges::all_of(expected, [](double value) { return std::abs(value) < kRoundingOfDoubles; });
      EXPECT_EQ(is_zero, is_unseen(parameter.name)) << parameter.name;
      if (is_zero) {
        for (const float value : run.gradient(parameter))
          EXPECT_NEAR(value, 0, 0.1 * kTaskParity) << parameter.name;
        continue;
      }
      ops::expect_near(run.gradient(parameter), expected, parameter.name, kTaskParity);
    }
  }
}

TEST_P(TaskParity, InferenceGivesTheSameLogitsAndLoss) {
  for (const batch::MicroBatch& batch : layouts()) {
    SCOPED_TRACE(batch.num_rows);
    BertInference inference(golden_.config(), capacity_of(batch), 2);
    golden_.read_weights(inference.parameters(), inference.weights().span<float>());
    ops::expect_near(inference.logits(batch), golden_.logits(), "logits", kTaskParity);
    const EvaluationSums sums = inference.evaluate(batch);
    EXPECT_EQ(sums.objectives[0].num_losses, golden_.num_losses());
    EXPECT_NEAR(sums.objectives[0].loss / num_losses_, golden_.loss(), kTaskParity * golden_.loss());
  }
}

}  // namespace
}  // namespace plenum::model

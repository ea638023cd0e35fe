#include <algorithm>

#include <gmock/gmock.h>

#include "plenum/base/check.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/flops.h"
#include "plenum/describe/parameter_table.h"

#include "tests/support/task_batches.h"
#include "tests/support/tiny_model.h"

namespace plenum::describe {
namespace {

using testing::ElementsAre;

ModelDescription fine_tuned(const Task& task) {
  ModelConfig config = test::tiny_model();
  config.task = task;
  return describe_bert(config);
}

const Task& task_of(TaskKind kind) {
  static const std::vector<Task> tasks = test::every_task();
  return *std::ranges::find(tasks, kind, &Task::kind);
}

std::vector<std::string> head_parameters(const Task& task) {
  std::vector<std::string> names;
  const ParameterTable table(fine_tuned(task));
  for (const Parameter& parameter : table.parameters()) {
    if (parameter.part == ModelPart::Head) names.push_back(parameter.name);
  }
  return names;
}

TEST(TaskHeads, HaveTheParametersThatHuggingFaceGivesThem) {
  const auto pooled = ElementsAre("classifier.weight", "classifier.bias", "bert.pooler.dense.weight",
                                  "bert.pooler.dense.bias");
  EXPECT_THAT(head_parameters(task_of(TaskKind::Classification)), pooled);
  EXPECT_THAT(head_parameters(task_of(TaskKind::Regression)), pooled);
  EXPECT_THAT(head_parameters(task_of(TaskKind::MultipleChoice)), pooled);
  EXPECT_THAT(head_parameters(task_of(TaskKind::TokenClassification)),
              ElementsAre("classifier.weight", "classifier.bias"));
  EXPECT_THAT(head_parameters(task_of(TaskKind::QuestionAnswering)),
              ElementsAre("qa_outputs.weight", "qa_outputs.bias"));
}

TEST(TaskHeads, HaveAnOutputForEachClassOrColumn) {
  const auto outputs = [](TaskKind kind) { return fine_tuned(task_of(kind)).heads.front().output.out_width; };
  EXPECT_EQ(outputs(TaskKind::Classification), 3);
  EXPECT_EQ(outputs(TaskKind::Regression), 1);
  EXPECT_EQ(outputs(TaskKind::TokenClassification), 4);
  EXPECT_EQ(outputs(TaskKind::QuestionAnswering), 2);
  EXPECT_EQ(outputs(TaskKind::MultipleChoice), 1);
}

TEST(TaskHeads, DropWhatTheTaskSaysOrTheModel) {
  Task task = task_of(TaskKind::Classification);
  EXPECT_EQ(fine_tuned(task).heads.front().dropout, test::tiny_model().hidden_dropout);
  task.dropout = 0.25;
  EXPECT_EQ(fine_tuned(task).heads.front().dropout, 0.25);
  task.kind = TaskKind::QuestionAnswering;
  EXPECT_EQ(fine_tuned(task).heads.front().dropout, 0);
}

TEST(TaskHeads, ShareNoWordTable) {
  const ParameterTable table(fine_tuned(task_of(TaskKind::QuestionAnswering)));
  EXPECT_EQ(table.tied(), nullptr);
  EXPECT_FALSE(table.is_tied_apart());
  EXPECT_TRUE(table.model().file_names.copies.empty());
}

TEST(TaskHeads, CostWhatTheirMapsDo) {
  const batch::Work work{.tokens = 10, .squared_lengths = 50, .sequences = 2, .labels = {2}};
  const auto flops = [&](TaskKind kind) { return Flops(fine_tuned(task_of(kind))).forward(work); };
  // Width 4: classes or columns of an output map, and the pooler's map.
  EXPECT_EQ(flops(TaskKind::TokenClassification) - flops(TaskKind::QuestionAnswering), 2 * 2 * 4 * (4 - 2));
  EXPECT_EQ(flops(TaskKind::Classification) - flops(TaskKind::QuestionAnswering), 2 * 2 * 4 * (4 + 3 - 2));
}

TEST(TaskHeads, HaveALossForEachLabelOrGroup) {
  const auto losses = [](TaskKind kind, std::int64_t labels, std::int64_t sequences) {
    return num_losses(task_objective(task_of(kind)), labels, sequences);
  };
  EXPECT_EQ(losses(TaskKind::Classification, 6, 6), 6);
  EXPECT_EQ(losses(TaskKind::Regression, 6, 6), 6);
  EXPECT_EQ(losses(TaskKind::TokenClassification, 17, 6), 17);
  EXPECT_EQ(losses(TaskKind::QuestionAnswering, 90, 6), 6);
  EXPECT_EQ(losses(TaskKind::MultipleChoice, 6, 6), 2);
  EXPECT_THROW(num_losses(task_objective({.kind = TaskKind::MultipleChoice}), 6, 6), base::InternalError);
}

}  // namespace
}  // namespace plenum::describe

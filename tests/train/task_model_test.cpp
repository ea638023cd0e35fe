// Directories of models that are fine-tuned for a task: found, loaded, exported, begun from.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/model/hugging_face_config.h"
#include "plenum/train/mask_filling.h"
#include "plenum/train/model_export.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/run_program.h"
#include "tests/support/task_batches.h"
#include "tests/train/task_model_fixture.h"

namespace plenum::train {
namespace {

using describe::Task;
using describe::TaskKind;
using testing::HasSubstr;

TEST_F(TaskModel, IsExportedWithItsTaskAndTheSameBytes) {
  std::vector<Task> tasks = test::every_task();
  tasks.push_back({.kind = TaskKind::MultipleChoice});  // of any number of choices
  for (const Task& task : tasks) {
    SCOPED_TRACE(describe::name_of(task.kind));
    const std::string directory = write_model(task);
    const ModelSource source = find(directory);
    EXPECT_EQ(source.config.task, task);
    const std::string copy = directory_ / "copy";
    const ExportReport report = export_model(source, copy, io::Replace::Yes, 1);
    EXPECT_GE(report.logits_compared, describe::num_outputs(task) * 4);
    for (const auto& [file, bytes] : data::contents_of(directory))
      EXPECT_TRUE(io::read_file(copy + "/" + file) == bytes) << file;
  }
}

TEST_F(TaskModel, FillsNoMasks) {
  const ModelSource source = find(write_model({.kind = TaskKind::QuestionAnswering}));
  const std::string reason = fmt::format(
      "{0} is fine-tuned for question-answering and predicts no masked tokens; use plenum predict "
      "--model {0}",
      source.directory);
  EXPECT_EQ(test::user_error_of([&] { MaskFilling(source, {"a [MASK]"}, 1); }), reason);
  for (const std::string& command :
       {"eval '" + source.directory + "' --data '" + dataset_ + "'",
        "fill-mask --device cpu --model '" + source.directory + "' 'a [MASK]'"}) {
    const test::ProgramResult result = test::run_program(command);
    EXPECT_EQ(result.exit_code, 2) << command;
    EXPECT_EQ(result.errors, "plenum: error: " + reason + "\n");
  }
}

TEST_F(TaskModel, WithoutItsHeadIsToBeFineTuned) {
  const std::string directory = write_model({.kind = TaskKind::TokenClassification, .labels = {"O", "B"}});
  describe::ModelConfig config = model::read_hugging_face_config(directory);
  config.task = Task{.kind = TaskKind::QuestionAnswering};
  io::write_file(directory + "/config.json", model::print_hugging_face_config(config));
  test::expect_user_error(
      [&] { export_model(find(directory), directory_ / "copy", io::Replace::No, 1); },
      "lacks qa_outputs.weight, qa_outputs.bias; train it first: plenum finetune --model");
}

TEST_F(TaskModel, GivesItsEncoderToPreTraining) {
  RunOptions given = options("run", 1);
  given.model = {.init = write_model({.kind = TaskKind::Classification, .labels = {"no", "yes"}})};
  run(given);
  EXPECT_THAT(observer_.notes, testing::Contains(HasSubstr("classifier.weight")));
  EXPECT_FALSE(find(given.run.directory).config.task);
}

}  // namespace
}  // namespace plenum::train

// What Hugging Face transformers makes of directories of models with the head of a task, where a Python that
// has it is at hand.

#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plenum/model/hugging_face_task.h"
#include "plenum/model/inference.h"
#include "plenum/train/model_export.h"

#include "tests/support/run_program.h"
#include "tests/support/task_batches.h"
#include "tests/train/task_model_fixture.h"

namespace plenum::train {
namespace {

using describe::Task;
using describe::TaskKind;

constexpr const char* kPython = "'" PLENUM_PYTHON "'";

/// An example's sequences, of which all rows that the head reads are asked for: of words every token.
batch::MicroBatch example_of(const Task& task, std::span<const test::TestSequence> sequences) {
  if (task.kind != TaskKind::TokenClassification) return test::lay_out_task(task, sequences);
  batch::MicroBatch batch = test::lay_out(sequences);
  batch.objectives.assign(1, {});
  for (std::int32_t row = 0; row < batch.num_rows; ++row) {
    batch.objectives.front().rows.push_back(row);
    batch.objectives.front().labels.push_back(0);
  }
  return batch;
}

class TaskPeer : public TaskModel {
 protected:
  /// Writes examples and what Plenum says of them as tools/verify_predictions.py reads them.
  void write_predictions(const ModelSource& source) const {
    const Task& task = *source.config.task;
    const std::size_t size = test::sequences_of_example(task);
    const std::vector<test::TestSequence> sequences =
        test::random_sequences(4 * size, 24, static_cast<std::int32_t>(vocabulary_), 5);
    std::ofstream examples(directory_ / "examples.jsonl");
    std::ofstream predictions(directory_ / "predictions.jsonl");
    for (std::size_t first = 0; first < sequences.size(); first += size) {
      const auto example = std::span(sequences).subspan(first, size);
      nlohmann::json ids = nlohmann::json::array();
      nlohmann::json segments = nlohmann::json::array();
      for (const test::TestSequence& sequence : example) {
        ids.push_back(sequence.ids);
        segments.push_back(sequence.segments);
      }
      const bool has_choices = task.kind == TaskKind::MultipleChoice;
      examples << nlohmann::json{{"ids", has_choices ? ids : ids[0]},
                                 {"segments", has_choices ? segments : segments[0]}}
               << "\n";
      const batch::MicroBatch batch = example_of(task, example);
      const auto model = load_model(source, test::capacity_of(batch), 1);
      predictions << nlohmann::json{{"logits", model->logits(batch)}} << "\n";
    }
  }

  test::ProgramResult verify(const std::string& tool, const std::string& arguments) const {
    return test::run_command(
        std::string(kPython) + " '" PLENUM_SOURCE_DIR "/tools/" + tool + "' " + arguments, directory_.path());
  }
};

TEST_F(TaskPeer, TransformersTakesExportsAsItsOwnAndComputesTheSameLogits) {
  if (test::run_command(std::string(kPython) + " -c 'import torch, transformers'").exit_code != 0) {
    GTEST_SKIP() << kPython
                 << " has no torch and transformers: `tools/peers torch transformers` gets them, or "
                 << "configure with -DPLENUM_PYTHON=PROGRAM";
  }
  std::string names;
  std::string expected;
  for (const Task& task : test::every_task()) {
    const std::string name(describe::name_of(task.kind));
    export_model(find(write_model(task, "random " + name)), directory_ / name, io::Replace::No, 1);
    names += " " + name;
    expected += name + ": loads without a warning, saves the same bytes\n";
    write_predictions(find(directory_ / name));
    const test::ProgramResult predicted =
        verify("verify_predictions.py", name + " examples.jsonl predictions.jsonl");
    EXPECT_EQ(predicted.exit_code, 0) << predicted.errors;
    EXPECT_EQ(predicted.output, fmt::format("{}: {} predicts the same: 4 logits\n", name,
                                            model::hugging_face_class(task.kind)));
  }
  const test::ProgramResult verified = verify("verify_export.py", names);
  EXPECT_EQ(verified.exit_code, 0) << verified.errors;
  EXPECT_EQ(verified.output, expected);

  // What would make it fail is noticed.
  std::ofstream(directory_ / "predictions.jsonl") << "{\"logits\": [0]}\n{}\n{}\n{}\n";
  const test::ProgramResult refused =
      verify("verify_predictions.py", "regression examples.jsonl predictions.jsonl");
  EXPECT_EQ(refused.exit_code, 1);
}

}  // namespace
}  // namespace plenum::train

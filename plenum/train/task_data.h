#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plenum/data/tasks/task_examples.h"
#include "plenum/data/tasks/task_sequences.h"
#include "plenum/data/tokenizer/tokenizer.h"
#include "plenum/train/training_data.h"

namespace plenum::train {

/// The files of a task, read and cut into tokens, for fine-tuning.
class TaskData final : public TrainingData {
 public:
  /// By the tokenizer that the run has kept or, where it begins, of the model that it begins with. Options
  /// are settled (settle_task). Throws UserError for what cannot be read, naming file and line, and for a
  /// metric that the task does not have.
  explicit TaskData(const RunOptions& options);
  TaskData(const TaskData&) = delete;
  TaskData& operator=(const TaskData&) = delete;

  const data::SequenceSource& training() const override { return training_; }
  const data::SequenceSource* held_out() const override { return held_out_ ? &*held_out_ : nullptr; }
  const data::TaskSequences* scored() const override { return held_out_ ? &*held_out_ : nullptr; }
  std::string name() const override;
  std::string held_out_advice() const override { return "add --dev FILE"; }
  std::string fingerprint() const override;
  describe::ModelConfig fitted(describe::ModelConfig model, const std::string& init) const override;
  std::vector<std::pair<std::string, std::string>> tokenizer_files() const override;
  std::vector<std::string> remarks() const override;

 private:
  TaskSettings settings_;
  std::string tokenizer_directory_;
  data::Tokenizer tokenizer_;
  data::TaskExamples training_examples_;
  data::TaskSequences training_;
  std::optional<data::TaskExamples> dev_examples_;
  std::optional<data::TaskSequences> held_out_;
};

}  // namespace plenum::train

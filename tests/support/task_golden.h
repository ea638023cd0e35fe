#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plenum/batch/micro_batch.h"
#include "plenum/describe/model_config.h"
#include "plenum/describe/objective.h"
#include "plenum/describe/parameter_table.h"

#include "tests/support/golden_tensors.h"
#include "tests/support/test_sequences.h"

namespace plenum::test {

/// What Hugging Face computes for a tiny BERT with the head of a task (tools/make_task_golden.py).
class TaskGolden : public GoldenTensors {
 public:
  static constexpr std::int64_t kNumChoices = 3;

  explicit TaskGolden(describe::TaskKind kind)
      : GoldenTensors("tasks.safetensors"), kind_(kind), prefix_(std::string(name_of(kind)) + "/") {}

  describe::Task task() const {
    describe::Task task{.kind = kind_, .labels = {}, .dropout = {}};
    if (kind_ == describe::TaskKind::Classification) task.labels = {"a", "b", "c"};
    if (kind_ == describe::TaskKind::TokenClassification) task.labels = {"O", "B", "I", "E"};
    if (kind_ == describe::TaskKind::MultipleChoice) task.num_choices = kNumChoices;
    return task;
  }
  describe::ModelConfig config() const {
    return {.vocabulary = 53,
            .width = 16,
            .num_layers = 2,
            .num_heads = 2,
            .mlp_width = 24,
            .max_positions = 20,
            .hidden_dropout = 0,
            .attention_dropout = 0,
            .task = task()};
  }

  /// Overwrites flat buffers with the weights.
  void read_weights(const describe::ParameterTable& table, std::span<float> flat) const {
    for (const describe::Parameter& parameter : table.parameters()) {
      const bool is_shared = parameter.name.starts_with("bert.");
      read_parameter((is_shared ? "" : prefix_) + "weight:" + parameter.name, parameter, flat);
    }
  }

  /// Of the rows that the head reads, and of each parameter.
  std::vector<double> logits() const { return expected(prefix_ + "logits"); }
  double loss() const { return read<double>(prefix_ + "loss").front(); }
  std::vector<double> gradient(const std::string& parameter) const {
    return expected(prefix_ + "gradient:" + parameter);
  }

  /// All sequences, laid out as lay_out() does.
  batch::MicroBatch micro_batch(std::int64_t row_length = 0) const {
    const std::vector<TestSequence> sequences = this->sequences();
    batch::MicroBatch batch = lay_out(sequences, row_length);
    batch.objectives.assign(1, {});
    batch::ObjectiveRows& objective = batch.objectives.front();
    objective.labels = labels();
    std::size_t sequence = 0;
    std::int32_t begin = 0;  // of the sequence where nothing is padded
    for (const std::int32_t row : read<std::int32_t>(prefix_ + "rows")) {
      while (row >= begin + batch.lengths[sequence]) begin += batch.lengths[sequence++];
      objective.rows.push_back(batch.starts[sequence] + row - begin);
    }
    return batch;
  }

  /// By what a micro-batch's losses are divided: as the objective counts them.
  std::int64_t num_losses() const {
    const auto num_sequences = static_cast<std::int64_t>(read<std::int32_t>("lengths").size());
    const auto num_labels = static_cast<std::int64_t>(read<std::int32_t>(prefix_ + "rows").size());
    return describe::num_losses(describe::task_objective(task()), num_labels, num_sequences);
  }

 private:
  std::vector<TestSequence> sequences() const {
    const auto ids = read<std::int32_t>("ids");
    const auto segments = read<std::int32_t>("segments");
    std::vector<TestSequence> sequences;
    auto begin = std::ptrdiff_t{0};
    for (const std::int32_t length : read<std::int32_t>("lengths")) {
      sequences.push_back({.sample = std::ssize(sequences),
                           .ids = {ids.begin() + begin, ids.begin() + begin + length},
                           .segments = {segments.begin() + begin, segments.begin() + begin + length}});
      begin += length;
    }
    return sequences;
  }

  /// Of each row, as micro-batches have them.
  std::vector<std::int32_t> labels() const {
    const std::string name = prefix_ + "labels";
    switch (kind_) {
      case describe::TaskKind::Classification:
      case describe::TaskKind::TokenClassification:
        break;
      case describe::TaskKind::Regression: {
        std::vector<std::int32_t> bits;
        for (const float value : read<float>(name)) bits.push_back(std::bit_cast<std::int32_t>(value));
        return bits;
      }
      case describe::TaskKind::QuestionAnswering:
        return answer_labels(read<std::int32_t>(name));
      case describe::TaskKind::MultipleChoice:
        return choice_labels(read<std::int32_t>(name));
    }
    return read<std::int32_t>(name);
  }

  /// `spans`: first and last token of each sequence's answer.
  std::vector<std::int32_t> answer_labels(const std::vector<std::int32_t>& spans) const {
    std::vector<std::int32_t> labels;
    std::size_t sequence = 0;
    for (const std::int32_t length : read<std::int32_t>("lengths")) {
      const std::size_t begin = labels.size();
      labels.resize(begin + static_cast<std::size_t>(length));
      labels[begin] = describe::GroupLabel::kFirst;
      for (int column = 0; column < 2; ++column) {
        const std::int32_t position = spans[2 * sequence + static_cast<std::size_t>(column)];
        labels[begin + static_cast<std::size_t>(position)] |= describe::GroupLabel::answer(column);
      }
      ++sequence;
    }
    return labels;
  }

  static std::vector<std::int32_t> choice_labels(const std::vector<std::int32_t>& right) {
    std::vector<std::int32_t> labels;
    for (const std::int32_t choice : right) {
      for (std::int32_t i = 0; i < kNumChoices; ++i) {
        labels.push_back((i == 0 ? describe::GroupLabel::kFirst : 0) |
                         (i == choice ? describe::GroupLabel::answer(0) : 0));
      }
    }
    return labels;
  }

  describe::TaskKind kind_;
  std::string prefix_;
};

}  // namespace plenum::test

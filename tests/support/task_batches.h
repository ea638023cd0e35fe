#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "plenum/batch/group_label.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/describe/task.h"

#include "tests/support/test_sequences.h"

namespace plenum::test {

inline constexpr std::int64_t kTestChoices = 3;

/// One task of every kind.
inline std::vector<describe::Task> every_task() {
  using describe::TaskKind;
  return {{.kind = TaskKind::Classification, .labels = {"a", "b", "c"}},
          {.kind = TaskKind::Regression},
          {.kind = TaskKind::TokenClassification, .labels = {"a", "b", "c", "d"}},
          {.kind = TaskKind::QuestionAnswering},
          {.kind = TaskKind::MultipleChoice, .num_choices = kTestChoices}};
}

/// Sequences that belong into one micro-batch.
inline std::size_t sequences_of_example(const describe::Task& task) {
  return task.kind == describe::TaskKind::MultipleChoice ? static_cast<std::size_t>(task.num_choices) : 1;
}

/// Adds what the task's objective reads of sequence `index`, which begins with row `start`: labels follow
/// from the sample alone.
inline void add_labels(const describe::Task& task, const TestSequence& sequence, std::size_t index,
                       std::int32_t start, batch::ObjectiveRows& read) {
  using batch::GroupLabel;
  using describe::TaskKind;
  const auto length = static_cast<std::int32_t>(sequence.ids.size());
  const auto sample = static_cast<std::int32_t>(sequence.sample);
  const auto num_classes = static_cast<std::int32_t>(task.labels.size());
  const auto add = [&](std::int32_t position, std::int32_t label) {
    read.rows.push_back(start + position);
    read.labels.push_back(label);
  };
  switch (task.kind) {
    case TaskKind::Classification:
      return add(0, sample % num_classes);
    case TaskKind::Regression:
      return add(0, std::bit_cast<std::int32_t>(0.4F * static_cast<float>(sample % 5) - 0.7F));
    case TaskKind::TokenClassification:
      for (std::int32_t i = sample % 3; i < length; i += 3) add(i, (sample + i) % num_classes);
      return;
    case TaskKind::QuestionAnswering: {
      const std::int32_t begin = sample % length;
      const std::int32_t end = begin + sample / 7 % (length - begin);
      for (std::int32_t i = 0; i < length; ++i) {
        add(i, (i == 0 ? GroupLabel::kFirst : 0) | (i == begin ? GroupLabel::answer(0) : 0) |
                   (i == end ? GroupLabel::answer(1) : 0));
      }
      return;
    }
    case TaskKind::MultipleChoice: {
      const auto choice = static_cast<std::int64_t>(index) % task.num_choices;
      const std::int64_t right = (sequence.sample / 7 - choice) / task.num_choices % task.num_choices;
      return add(0, (choice == 0 ? GroupLabel::kFirst : 0) | (choice == right ? GroupLabel::answer(0) : 0));
    }
  }
}

/// As lay_out(), with the task's labels in place of those of pre-training.
inline batch::MicroBatch lay_out_task(const describe::Task& task, std::span<const TestSequence> sequences,
                                      std::int64_t row_length = 0, std::size_t sequences_of_row = 1) {
  batch::MicroBatch batch = lay_out(sequences, row_length, sequences_of_row);
  batch.objectives.assign(1, {});
  for (std::size_t i = 0; i < sequences.size(); ++i)
    add_labels(task, sequences[i], i, batch.starts[i], batch.objectives.front());
  return batch;
}

}  // namespace plenum::test

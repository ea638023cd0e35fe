#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plenum::describe {

/// What a model is fine-tuned for.
enum class TaskKind : std::uint8_t {
  Classification,       ///< a text or a pair of texts is of one of several classes
  Regression,           ///< it has a number
  TokenClassification,  ///< each of its words is of one of several classes
  QuestionAnswering,    ///< the answer to a question is a span of a text
  MultipleChoice        ///< one of several texts goes with the first
};

/// "classification", "regression", "token-classification", "question-answering" or "multiple-choice".
std::string_view name_of(TaskKind kind);
/// Throws UserError naming `what` for anything but a name that name_of gives.
TaskKind task_kind_of(std::string_view name, std::string_view what);

/// A task, with what its head has to know of the data.
struct Task {
  TaskKind kind = TaskKind::Classification;
  std::vector<std::string> labels;  ///< names of the classes, by their ids; of the other kinds none
  std::int64_t num_choices = 0;     ///< of every example of MultipleChoice; 0: not known
  std::optional<double> dropout;    ///< of what the head's last map reads; the hidden dropout if absent

  friend bool operator==(const Task&, const Task&) = default;
};

/// Logits of a row that the task's head reads.
std::int64_t num_outputs(const Task& task);

}  // namespace plenum::describe

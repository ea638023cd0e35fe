#include "plenum/describe/task.h"

#include <array>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::describe {
namespace {

constexpr std::array<std::pair<TaskKind, std::string_view>, 5> kNames = {
    {{TaskKind::Classification, "classification"},
     {TaskKind::Regression, "regression"},
     {TaskKind::TokenClassification, "token-classification"},
     {TaskKind::QuestionAnswering, "question-answering"},
     {TaskKind::MultipleChoice, "multiple-choice"}}};

}  // namespace

std::string_view name_of(TaskKind kind) {
  return kNames[static_cast<std::size_t>(kind)].second;
}

TaskKind task_kind_of(std::string_view name, std::string_view what) {
  for (const auto& [kind, known] : kNames) {
    if (name == known) return kind;
  }
  base::fail(
      "{} must be classification, regression, token-classification, question-answering or multiple-choice: "
      "'{}'",
      what, name);
}

std::int64_t num_outputs(const Task& task) {
  if (task.kind == TaskKind::Classification || task.kind == TaskKind::TokenClassification)
    return static_cast<std::int64_t>(task.labels.size());
  return task.kind == TaskKind::QuestionAnswering ? 2 : 1;
}

}  // namespace plenum::describe

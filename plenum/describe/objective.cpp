#include "plenum/describe/objective.h"

#include "plenum/base/check.h"

namespace plenum::describe {

Objective masked_token_objective(std::int64_t vocabulary) {
  return {.name = "mlm",
          .title = "MLM",
          .labelled = "masked tokens",
          .count_key = "masked",
          .rows = RowsRead::Chosen,
          .loss = LossKind::WordCrossEntropy,
          .num_classes = vocabulary};
}

Objective next_sentence_objective() {
  return {.name = "nsp",
          .title = "NSP",
          .labelled = "sequences",
          .count_key = "",
          .rows = RowsRead::FirstOfSequence,
          .loss = LossKind::ClassCrossEntropy,
          .num_classes = 2};
}

Objective task_objective(const Task& task) {
  Objective objective{.name = "task",
                      .title = std::string(name_of(task.kind)),
                      .labelled = "sequences",
                      .count_key = "",
                      .rows = RowsRead::FirstOfSequence,
                      .loss = LossKind::ClassCrossEntropy,
                      .num_classes = num_outputs(task)};
  switch (task.kind) {
    case TaskKind::Classification:
      break;
    case TaskKind::Regression:
      objective.loss = LossKind::SquaredError;
      break;
    case TaskKind::TokenClassification:
      objective.labelled = "words";
      objective.count_key = "words";
      objective.rows = RowsRead::Chosen;
      break;
    case TaskKind::QuestionAnswering:
      objective.rows = RowsRead::All;
      objective.loss = LossKind::GroupCrossEntropy;
      break;
    case TaskKind::MultipleChoice:
      objective.labelled = "examples";
      objective.loss = LossKind::GroupCrossEntropy;
      objective.group_sequences = task.num_choices;
      break;
  }
  return objective;
}

std::int64_t num_losses(const Objective& objective, std::int64_t labels, std::int64_t sequences) {
  if (objective.loss != LossKind::GroupCrossEntropy) return labels;
  base::check(objective.group_sequences > 0, "nobody knows how many sequences a group of {} is of",
              objective.title);
  return sequences / objective.group_sequences;
}

}  // namespace plenum::describe

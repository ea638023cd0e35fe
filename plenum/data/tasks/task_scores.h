#pragma once

#include <span>
#include <string>
#include <vector>

#include "plenum/data/tasks/predictions.h"
#include "plenum/data/tasks/task_examples.h"

namespace plenum::data {

/// A metric of predictions. More is better.
struct TaskScore {
  std::string name;  ///< accuracy, f1, f1_macro, matthews, pearson, spearman, exact_match, …
  double value = 0;  ///< 1 is best

  friend bool operator==(const TaskScore&, const TaskScore&) = default;
};

/// The names of a task's metrics, in the order in which score_predictions() gives them; the first is what the
/// best checkpoint is chosen by if nothing is said: accuracy, pearson, f1, accuracy.
///
/// *Classification*: accuracy, f1 (of the second of two classes), f1_macro, matthews. *Regression*: pearson,
/// spearman. *TokenClassification*: f1, precision, recall of entities where tags are IOB2, IOBES or BIO
/// without B, and accuracy of words; other tags have accuracy alone. *QuestionAnswering*: f1, exact_match.
/// *MultipleChoice*: accuracy.
std::vector<std::string> score_names(const describe::Task& task);

/// Scores predictions against the labels of examples, all of which must have one.
std::vector<TaskScore> score_predictions(std::span<const Prediction> predictions,
                                         const TaskExamples& examples);

}  // namespace plenum::data

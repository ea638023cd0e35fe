#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "plenum/describe/task.h"

namespace plenum::model {

/// The task of which a Hugging Face config.json, whose root this is, names the class among its architectures:
///   BertForSequenceClassification   Classification, or Regression where problem_type says so or there is one
///                                   label
///   BertForTokenClassification      TokenClassification
///   BertForQuestionAnswering        QuestionAnswering
///   BertForMultipleChoice           MultipleChoice
/// None where it names none of these. Labels are those of id2label in the order of their ids, LABEL_0 and so
/// on where it is missing. Throws UserError with `source` where what is said of labels contradicts itself or
/// the class, and for a classifier of which several labels may be right.
std::optional<describe::Task> read_hugging_face_task(const nlohmann::json& root, const std::string& source);

/// Sets the keys that say so: architectures, classifier_dropout, and of labels id2label, label2id and
/// problem_type. Plenum's own num_choices is there where their number is known.
void set_hugging_face_task(const describe::Task& task, nlohmann::json& root);

/// Why the head of a model with one task is not that of another, in a few words; empty if it is: the same
/// kind, and of classes the same labels in the same order.
std::string difference_of_heads(const std::optional<describe::Task>& stored, const describe::Task& wanted);

/// The class that has a task's head.
std::string hugging_face_class(describe::TaskKind kind);

}  // namespace plenum::model

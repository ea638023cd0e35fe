#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plenum/data/tasks/task_examples.h"
#include "plenum/data/tasks/task_records.h"

namespace plenum::data {

// What the fields of a record say. All throw UserError naming the record's place and the field.

/// A field that must be there and be text.
std::string text_field(const TaskRecord& record, const std::string& name);

/// A field as a label's or an example's name: text, a number or a truth value as JSON writes it. Nothing if
/// it is not there, null or empty.
std::optional<std::string> name_field(const TaskRecord& record, const std::string& name);

/// A field with a list of texts.
std::vector<std::string> text_list_field(const TaskRecord& record, const std::string& name);

/// A field with a list of names of labels; nothing if it is not there or null.
std::optional<std::vector<std::string>> name_list_field(const TaskRecord& record, const std::string& name);

/// A finite number; nothing if the field is not there, null or empty.
std::optional<double> number_field(const TaskRecord& record, const std::string& name);

/// The answers to a question: a list of objects with text and answer_start (SQuAD), or an object with a list
/// of each (Hugging Face), also as text that holds such JSON. Places are counted in characters. Nothing if
/// the field is not there or null. Throws also for an answer that does not stand where it says.
std::optional<std::vector<AnswerSpan>> answers_field(const TaskRecord& record, const std::string& name,
                                                     const std::string& context);

/// The right one of `num_choices`: its number, from 0, or its letter, from A. Nothing if the field is not
/// there, null, empty or -1.
std::optional<std::int32_t> choice_field(const TaskRecord& record, const std::string& name,
                                         std::size_t num_choices);

}  // namespace plenum::data

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plenum/data/tasks/task_options.h"
#include "plenum/describe/task.h"

namespace plenum::data {

/// An answer to a question, as a part of its context.
struct AnswerSpan {
  std::size_t begin = 0;  ///< in bytes
  std::string text;

  std::size_t end() const { return begin + text.size(); }
  friend bool operator==(const AnswerSpan&, const AnswerSpan&) = default;
};

/// An example of a task, as a file has it. What its task does not have is empty.
struct TaskExample {
  std::string place;                 ///< where it stands: file and line, for messages
  std::string id;                    ///< from the data; its number in the file, from 0, if that has none
  std::string text;                  ///< or the question, or what choices begin with
  std::string pair;                  ///< the second text, or the context of the question
  std::vector<std::string> words;    ///< TokenClassification
  std::vector<std::string> choices;  ///< MultipleChoice: second texts

  bool is_labelled = false;         ///< whether what follows is known
  std::int32_t label = 0;           ///< class, or the right choice
  double number = 0;                ///< Regression
  std::vector<std::int32_t> tags;   ///< class of each word
  std::vector<AnswerSpan> answers;  ///< empty: the context has none
};

/// Whether every example must have a label.
enum class Labelled : std::uint8_t { Required, Optional };

/// The examples of one file.
struct TaskExamples {
  std::string path;
  describe::Task task;                ///< with the names of labels, or the number of choices
  std::vector<TaskExample> examples;  ///< at least one
  bool has_pairs = false;             ///< two texts each
  bool may_lack_answer = false;       ///< QuestionAnswering: as TaskOptions::no_answer says
  /// Whether all have a label: only then can predictions be scored.
  bool is_labelled = false;
  /// What was chosen and what was noticed, one line each, for people.
  std::vector<std::string> remarks;
};

/// Reads the examples that a model is to be trained on, and with them what the task's labels are: numbers in
/// their order if all are whole numbers, else by name in the order of bytes; so they do not depend on the
/// order of examples. Throws UserError of one line, naming file and line, for what cannot be read or has no
/// label.
TaskExamples read_training_examples(const std::string& path, describe::TaskKind kind,
                                    const TaskOptions& options);

/// Reads the examples that a model is evaluated on or is to label, whose labels are those of `task`. Throws
/// UserError likewise, and for labels that the task does not have. With Labelled::Optional, a label that is
/// empty, null or -1 (unless the task has one of that name) or a column that is not there is none.
TaskExamples read_examples(const std::string& path, const describe::Task& task, const TaskOptions& options,
                           Labelled labelled);

}  // namespace plenum::data

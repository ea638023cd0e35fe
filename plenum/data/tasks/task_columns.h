#pragma once

#include <string>
#include <vector>

#include "plenum/data/tasks/task_examples.h"
#include "plenum/data/tasks/task_options.h"

namespace plenum::data {

/// Which columns or fields of a file hold what. Empty: none.
struct TaskColumns {
  std::string text;
  std::string pair;
  std::string label;
  std::string id;
  std::vector<std::string> choices;  ///< one with a list, or one for each
};

/// Chooses among the columns that there are: those that the options name, and else the first of the usual
/// names. Throws UserError, beginning with `place`, naming the columns if one that must be there is not.
TaskColumns choose_columns(describe::TaskKind kind, const TaskOptions& options,
                           const std::vector<std::string>& columns, Labelled labelled,
                           const std::string& place);

/// What was chosen, in a line for people: "text from sentence1, pair from sentence2, label from label".
std::string describe_columns(const TaskColumns& columns, describe::TaskKind kind);

}  // namespace plenum::data

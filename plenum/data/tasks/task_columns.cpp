#include "plenum/data/tasks/task_columns.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/options.h"

namespace plenum::data {
namespace {

using describe::TaskKind;

/// Usual names of a text and what goes with it; without a second, of texts alone.
struct UsualTexts {
  std::string_view text;
  std::string_view pair;
};

constexpr std::array kTexts = {UsualTexts{"sentence1", "sentence2"},
                               UsualTexts{"premise", "hypothesis"},
                               UsualTexts{"question1", "question2"},
                               UsualTexts{"question", "sentence"},
                               UsualTexts{"question", "passage"},
                               UsualTexts{"text_a", "text_b"},
                               UsualTexts{"text1", "text2"},
                               UsualTexts{"text", "text_pair"},
                               UsualTexts{"sentence", ""},
                               UsualTexts{"text", ""},
                               UsualTexts{"review", ""},
                               UsualTexts{"content", ""},
                               UsualTexts{"question", ""}};
constexpr std::array kWords = {UsualTexts{"tokens", ""}, UsualTexts{"words", ""}};
constexpr std::array kQuestions = {UsualTexts{"question", "context"}};
constexpr std::array kBeginnings = {
    UsualTexts{"sent1", "sent2"}, UsualTexts{"article", "question"}, UsualTexts{"context", "question"},
    UsualTexts{"context", ""},    UsualTexts{"premise", ""},         UsualTexts{"question", ""},
    UsualTexts{"text", ""}};

std::span<const UsualTexts> usual_texts(TaskKind kind) {
  if (kind == TaskKind::TokenClassification) return kWords;
  if (kind == TaskKind::QuestionAnswering) return kQuestions;
  if (kind == TaskKind::MultipleChoice) return kBeginnings;
  return kTexts;
}

std::vector<std::string_view> usual_labels(TaskKind kind) {
  switch (kind) {
    case TaskKind::Classification:
      return {"label", "labels", "class", "category"};
    case TaskKind::Regression:
      return {"score", "label", "labels", "value"};
    case TaskKind::TokenClassification:
      return {"ner_tags", "tags", "labels", "pos_tags"};
    case TaskKind::QuestionAnswering:
      return {"answers"};
    case TaskKind::MultipleChoice:
      break;
  }
  return {"label", "answer"};
}

/// The columns of a file, among which some are looked for.
class ColumnSearch {
 public:
  ColumnSearch(const std::vector<std::string>& columns, const std::string& place)
      : columns_(columns), place_(place) {}

  bool has(std::string_view name) const { return std::ranges::find(columns_, name) != columns_.end(); }

  /// The one that was asked for.
  std::string given(const std::string& name, std::string_view option) const {
    if (name == kNoColumn) return {};
    base::require(has(name), "{}: there is no column '{}'{}; choose one of {} by --{}", place_, name,
                  base::suggest_name(name, columns_), list(), option);
    return name;
  }

  std::string first_of(std::span<const std::string_view> names) const {
    for (const std::string_view name : names) {
      if (has(name)) return std::string(name);
    }
    return {};
  }

  /// choice0, choice1 … or choice1, choice2 ….
  std::vector<std::string> numbered(std::string_view stem) const {
    std::vector<std::string> found;
    for (int number = has(fmt::format("{}0", stem)) ? 0 : 1; has(fmt::format("{}{}", stem, number)); ++number)
      found.push_back(fmt::format("{}{}", stem, number));
    return found;
  }

  std::string list() const { return fmt::format("{}", fmt::join(columns_, ", ")); }

 private:
  const std::vector<std::string>& columns_;
  const std::string& place_;
};

void choose_texts(TaskKind kind, const TaskOptions& options, const ColumnSearch& search,
                  TaskColumns& chosen) {
  if (!options.text_column.empty()) {
    chosen.text = search.given(options.text_column, "text-column");
    if (!options.pair_column.empty()) chosen.pair = search.given(options.pair_column, "pair-column");
    return;
  }
  base::require(options.pair_column.empty(), "--pair-column needs --text-column");
  for (const UsualTexts& usual : usual_texts(kind)) {
    if (!search.has(usual.text) || (!usual.pair.empty() && !search.has(usual.pair))) continue;
    chosen.text = usual.text;
    chosen.pair = usual.pair;
    return;
  }
}

std::vector<std::string> choose_choices(const TaskOptions& options, const ColumnSearch& search) {
  std::vector<std::string> chosen;
  for (const std::string& name : options.choice_columns)
    chosen.push_back(search.given(name, "choice-columns"));
  if (!chosen.empty()) return chosen;
  constexpr std::array<std::string_view, 3> kLists = {"choices", "endings", "options"};
  if (const std::string name = search.first_of(kLists); !name.empty()) return {name};
  for (const std::string_view stem : {"choice", "ending", "option"}) {
    chosen = search.numbered(stem);
    if (!chosen.empty()) break;
  }
  return chosen;
}

}  // namespace

TaskColumns choose_columns(TaskKind kind, const TaskOptions& options, const std::vector<std::string>& columns,
                           Labelled labelled, const std::string& place) {
  const ColumnSearch search(columns, place);
  TaskColumns chosen;
  choose_texts(kind, options, search, chosen);
  base::require(
      !chosen.text.empty(),
      "{}: none of the columns {} has the name of a {}; give --text-column, by number if the file has "
      "no header",
      place, search.list(), kind == TaskKind::TokenClassification ? "list of words" : "text");
  base::require(kind != TaskKind::QuestionAnswering || !chosen.pair.empty(),
                "{}: a question needs a context; give --pair-column, one of {}", place, search.list());
  chosen.label = options.label_column.empty() ? search.first_of(usual_labels(kind))
                                              : search.given(options.label_column, "label-column");
  base::require(
      labelled == Labelled::Optional || !chosen.label.empty(),
      "{}: none of the columns {} has the name of a label; give --label-column, by number if the file "
      "has no header",
      place, search.list());
  constexpr std::array<std::string_view, 3> kIds = {"id", "idx", "guid"};
  chosen.id =
      options.id_column.empty() ? search.first_of(kIds) : search.given(options.id_column, "id-column");
  if (kind != TaskKind::MultipleChoice) return chosen;
  chosen.choices = choose_choices(options, search);
  base::require(!chosen.choices.empty(),
                "{}: none of the columns {} has the name of choices; give --choice-columns", place,
                search.list());
  return chosen;
}

std::string describe_columns(const TaskColumns& columns, TaskKind kind) {
  const bool is_question = kind == TaskKind::QuestionAnswering;
  std::string line = fmt::format("{} from '{}'", is_question ? "questions" : "texts", columns.text);
  if (!columns.pair.empty())
    line += fmt::format(", {} from '{}'", is_question ? "contexts" : "second texts", columns.pair);
  if (!columns.choices.empty()) line += fmt::format(", choices from {}", fmt::join(columns.choices, ", "));
  line += columns.label.empty() ? ", no labels" : fmt::format(", labels from '{}'", columns.label);
  if (!columns.id.empty()) line += fmt::format(", ids from '{}'", columns.id);
  return line;
}

}  // namespace plenum::data

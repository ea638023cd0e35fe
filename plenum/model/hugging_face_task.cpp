#include "plenum/model/hugging_face_task.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "plenum/base/check.h"

namespace plenum::model {
namespace {

using describe::Task;
using describe::TaskKind;
using nlohmann::json;

constexpr const char* kArchitectures = "architectures";
constexpr const char* kDropout = "classifier_dropout";
constexpr const char* kLabels = "id2label";
constexpr const char* kIds = "label2id";
constexpr const char* kNumLabels = "num_labels";
constexpr const char* kNumChoices = "num_choices";
constexpr const char* kProblem = "problem_type";
constexpr std::string_view kRegression = "regression";
constexpr std::string_view kSingleLabel = "single_label_classification";
constexpr std::int64_t kDefaultLabels = 2;  // of transformers
constexpr std::int64_t kMostLabels = 1 << 16;

/// Regression has the class of classification; their problem types differ.
constexpr std::array<std::pair<TaskKind, std::string_view>, 4> kClasses = {
    {{TaskKind::Classification, "BertForSequenceClassification"},
     {TaskKind::TokenClassification, "BertForTokenClassification"},
     {TaskKind::QuestionAnswering, "BertForQuestionAnswering"},
     {TaskKind::MultipleChoice, "BertForMultipleChoice"}}};

std::string default_label(std::size_t id) {
  return fmt::format("LABEL_{}", id);
}

/// What config.json says of a task, and errors that name it.
class TaskReader {
 public:
  TaskReader(const json& root, const std::string& source) : root_(root), source_(source) {}

  std::optional<Task> read() const {
    const std::optional<TaskKind> kind = named_kind();
    if (!kind) return {};
    Task task{.kind = *kind, .labels = {}, .dropout = dropout()};
    if (*kind == TaskKind::Classification || *kind == TaskKind::TokenClassification) {
      task.labels = labels();
      require_ids(task.labels);
    }
    if (*kind == TaskKind::Classification && is_regression(task.labels.size())) {
      task.kind = TaskKind::Regression;
      task.labels.clear();
    }
    if (*kind == TaskKind::QuestionAnswering) {
      const std::size_t count = labels().size();
      base::require(count == 2, "{}: {} has 2 outputs, where an answer begins and ends, not {}", source_,
                    hugging_face_class(*kind), count);
    }
    if (*kind == TaskKind::MultipleChoice) task.num_choices = count(kNumChoices).value_or(0);
    return task;
  }

 private:
  const json& value(const char* key) const {
    static const json null;
    const auto found = root_.find(key);
    return found == root_.end() ? null : *found;
  }

  std::optional<TaskKind> named_kind() const {
    const json& list = value(kArchitectures);
    if (!list.is_array()) return {};
    std::optional<TaskKind> kind;
    for (const auto& [known, name] : kClasses) {
      if (std::find(list.begin(), list.end(), json(name)) != list.end()) kind = known;
    }
    base::require(!kind || list.size() == 1, "{}: {} must name one class, that of the weights: {}", source_,
                  kArchitectures, list.dump());
    return kind;
  }

  std::optional<double> dropout() const {
    const json& found = value(kDropout);
    if (found.is_null()) return {};
    base::require(found.is_number(), "{}: {} must be a number: {}", source_, kDropout, found.dump());
    return found.get<double>();
  }

  std::optional<std::int64_t> count(const char* key) const {
    const json& found = value(key);
    if (found.is_null()) return {};
    base::require(found.is_number_integer() && found >= 0 && found <= kMostLabels,
                  "{}: {} must be a whole number from 0 to {}: {}", source_, key, kMostLabels, found.dump());
    return found.get<std::int64_t>();
  }

  std::vector<std::string> labels() const {
    const json& found = value(kLabels);
    const std::optional<std::int64_t> num_labels = count(kNumLabels);
    std::vector<std::string> labels;
    if (found.is_null() || found.empty()) {
      for (std::int64_t id = 0; id < num_labels.value_or(kDefaultLabels); ++id)
        labels.push_back(default_label(static_cast<std::size_t>(id)));
      return labels;
    }
    base::require(found.is_object(), "{}: {} must give each id a label: {}", source_, kLabels, found.dump());
    base::require(!num_labels || std::cmp_equal(*num_labels, found.size()),
                  "{}: {} has {} labels and {} says {}", source_, kLabels, found.size(), kNumLabels,
                  num_labels.value_or(0));
    labels.resize(found.size());
    for (const auto& [key, label] : found.items()) labels[id_of(key, labels.size())] = text_of(key, label);
    return labels;
  }

  /// Keys are as many as ids and differ, so that every id is there if each is one.
  std::size_t id_of(const std::string& key, std::size_t num_labels) const {
    std::size_t id = num_labels;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    base::require(error == std::errc() && fmt::to_string(id) == key && id < num_labels,
                  "{}: the ids in {} must be 0 to {}: '{}'", source_, kLabels, num_labels - 1, key);
    return id;
  }

  std::string text_of(const std::string& key, const json& label) const {
    base::require(label.is_string(), "{}: label {} in {} must be a text: {}", source_, key, kLabels,
                  label.dump());
    return label.get<std::string>();
  }

  /// label2id says the same as id2label, if it is there.
  void require_ids(const std::vector<std::string>& labels) const {
    const json& ids = value(kIds);
    std::set<std::string_view> known;
    for (std::size_t id = 0; id < labels.size(); ++id) {
      base::require(known.insert(labels[id]).second,
                    "{}: {} has two labels '{}'; give each a name of its own", source_, kLabels, labels[id]);
    }
    if (ids.is_null() || ids.empty()) return;
    base::require(ids.is_object() && ids.size() == labels.size(),
                  "{}: {} has other labels than {}; take it out or let it say the same", source_, kIds,
                  kLabels);
    for (std::size_t id = 0; id < labels.size(); ++id) {
      const auto found = ids.find(labels[id]);
      base::require(found != ids.end() && *found == id,
                    "{}: {} gives '{}' the id {}, {} another; take it out or let it say the same", source_,
                    kLabels, labels[id], id, kIds);
    }
  }

  bool is_regression(std::size_t num_labels) const {
    const json& problem = value(kProblem);
    if (problem.is_null()) return num_labels == 1;
    base::require(problem == kRegression || problem == kSingleLabel,
                  "{}: {} {} is not supported, only \"{}\" and \"{}\" are", source_, kProblem, problem.dump(),
                  kSingleLabel, kRegression);
    const bool is_regression = problem == kRegression;
    base::require(is_regression == (num_labels == 1),
                  "{}: {} {} does not go with {} label(s); {} is of one number, a class one of several",
                  source_, kProblem, problem.dump(), num_labels, kRegression);
    return is_regression;
  }

  const json& root_;
  const std::string& source_;
};

/// The first few.
std::string listed(const std::vector<std::string>& labels) {
  constexpr std::size_t kShown = 6;
  const std::size_t shown = std::min(labels.size(), kShown);
  return fmt::format("{}{}",
                     fmt::join(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < labels.size() ? fmt::format(" and {} more", labels.size() - shown) : "");
}

}  // namespace

std::string hugging_face_class(TaskKind kind) {
  if (kind == TaskKind::Regression) kind = TaskKind::Classification;
  return std::string(std::ranges::find(kClasses, kind, &decltype(kClasses)::value_type::first)->second);
}

std::string difference_of_heads(const std::optional<Task>& stored, const Task& wanted) {
  if (!stored) return "it is of no task";
  if (stored->kind != wanted.kind) return fmt::format("it is for {}", describe::name_of(stored->kind));
  if (stored->labels == wanted.labels) return {};
  return fmt::format("its labels are {}, not {}", listed(stored->labels), listed(wanted.labels));
}

std::optional<Task> read_hugging_face_task(const json& root, const std::string& source) {
  return TaskReader(root, source).read();
}

void set_hugging_face_task(const Task& task, json& root) {
  root[kArchitectures] = json::array({hugging_face_class(task.kind)});
  if (task.dropout) root[kDropout] = *task.dropout;
  if (task.num_choices > 0) root[kNumChoices] = task.num_choices;
  std::vector<std::string> labels = task.labels;
  if (task.kind == TaskKind::Regression) labels = {default_label(0)};
  for (std::size_t id = 0; id < labels.size(); ++id) {
    root[kLabels][fmt::to_string(id)] = labels[id];
    root[kIds][labels[id]] = id;
  }
  if (task.kind == TaskKind::Classification) root[kProblem] = kSingleLabel;
  if (task.kind == TaskKind::Regression) root[kProblem] = kRegression;
}

}  // namespace plenum::model

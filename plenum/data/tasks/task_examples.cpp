#include "plenum/data/tasks/task_examples.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/data/tasks/conll.h"
#include "plenum/data/tasks/example_fields.h"
#include "plenum/data/tasks/label_names.h"
#include "plenum/data/tasks/task_columns.h"
#include "plenum/data/tasks/task_records.h"

namespace plenum::data {
namespace {

using describe::TaskKind;

constexpr std::string_view kNoLabelName = "-1";

/// Reads one file.
class ExampleReader {
 public:
  ExampleReader(const std::string& path, const describe::Task& task, LabelNames names,
                const TaskOptions& options, Labelled labelled)
      : path_(path), options_(options), labelled_(labelled), names_(std::move(names)) {
    found_.path = path;
    found_.task = task;
    found_.has_pairs = task.kind == TaskKind::QuestionAnswering || task.kind == TaskKind::MultipleChoice;
  }

  /// Of a text that is the whole file.
  TaskExamples read(std::string_view text) {
    const TaskFormat format = task_format_of(path_, found_.task.kind, options_);
    if (format == TaskFormat::Conll) {
      read_sentences(text);
    } else {
      read_task_records(
          text, path_, format, options_,
          [&](const std::vector<std::string>& columns, const TaskRecord& record) { take(columns, record); });
    }
    base::require(!found_.examples.empty(), "{} has no examples", path_);
    finish();
    return std::move(found_);
  }

  LabelNames& names() { return names_; }

 private:
  void read_sentences(std::string_view text) {
    const std::size_t num_starts =
        read_conll(text, path_, options_, labelled_, [&](const ConllSentence& sentence) { take(sentence); });
    if (num_starts > 0)
      remark("passing over {} line{} of -DOCSTART-", base::format_count(num_starts),
             num_starts == 1 ? "" : "s");
  }

  void take(const ConllSentence& sentence) {
    TaskExample& example = add(sentence.place);
    example.id = std::to_string(found_.examples.size() - 1);
    example.words.assign(sentence.words.begin(), sentence.words.end());
    if (sentence.tags.empty()) return;
    example.is_labelled = true;
    for (const std::string_view tag : sentence.tags) take_tag(tag, example);
  }

  void take(const std::vector<std::string>& columns, const TaskRecord& record) {
    if (columns_.text.empty()) {
      columns_ = choose_columns(found_.task.kind, options_, columns, labelled_, record.place);
      remark("{}", describe_columns(columns_, found_.task.kind));
      found_.has_pairs = found_.has_pairs || !columns_.pair.empty();
    }
    TaskExample& example = add(record.place);
    example.id = name_field(record, columns_.id).value_or(std::to_string(found_.examples.size() - 1));
    switch (found_.task.kind) {
      case TaskKind::Classification:
        read_texts(record, example);
        take_class(name_field(record, columns_.label), example);
        break;
      case TaskKind::Regression:
        read_texts(record, example);
        take_number(number_field(record, columns_.label), example);
        break;
      case TaskKind::TokenClassification:
        read_words(record, example);
        break;
      case TaskKind::QuestionAnswering:
        read_question(record, example);
        break;
      case TaskKind::MultipleChoice:
        read_choices(record, example);
        break;
    }
    base::require(example.is_labelled || labelled_ == Labelled::Optional, "{}: the example has no label{}",
                  record.place,
                  columns_.label.empty() ? "" : fmt::format(": '{}' is not there, or empty", columns_.label));
  }

  TaskExample& add(const std::string& place) {
    TaskExample& example = found_.examples.emplace_back();
    example.place = place;
    return example;
  }

  void read_texts(const TaskRecord& record, TaskExample& example) const {
    example.text = text_field(record, columns_.text);
    if (!columns_.pair.empty()) example.pair = text_field(record, columns_.pair);
  }

  void take_class(const std::optional<std::string>& name, TaskExample& example) {
    const bool is_none =
        !name || (labelled_ == Labelled::Optional && *name == kNoLabelName && !names_.has(*name));
    if (is_none) return;
    example.label = number_of(*name, example.place);
    example.is_labelled = true;
  }

  static void take_number(const std::optional<double>& number, TaskExample& example) {
    example.is_labelled = number.has_value();
    example.number = number.value_or(0);
  }

  void take_tag(std::string_view tag, TaskExample& example) {
    base::require(!tag.empty(), "{}: a word has an empty tag", example.place);
    example.tags.push_back(number_of(tag, example.place));
  }

  std::int32_t number_of(std::string_view name, const std::string& place) {
    const std::optional<std::int32_t> number = names_.number_of(name);
    base::require(number.has_value(), "{}: the label '{}' is none of those of training{}: {}", place, name,
                  base::suggest_name(name, names_.names()), fmt::join(names_.names(), ", "));
    return *number;
  }

  void read_words(const TaskRecord& record, TaskExample& example) {
    example.words = text_list_field(record, columns_.text);
    base::require(!example.words.empty(), "{}: the example has no words", record.place);
    const auto tags = name_list_field(record, columns_.label);
    if (!tags) return;
    base::require(tags->size() == example.words.size(), "{}: there are {} words, but {} tags", record.place,
                  example.words.size(), tags->size());
    example.is_labelled = true;
    for (const std::string& tag : *tags) take_tag(tag, example);
  }

  void read_question(const TaskRecord& record, TaskExample& example) const {
    read_texts(record, example);
    auto answers = answers_field(record, columns_.label, example.pair);
    if (!answers) return;
    example.is_labelled = true;
    example.answers = *std::move(answers);
    base::require(!example.answers.empty() || options_.no_answer != NoAnswer::No,
                  "{}: the question has no answer, which --no-answer no rules out", record.place);
  }

  void read_choices(const TaskRecord& record, TaskExample& example) {
    example.text = text_field(record, columns_.text);
    const std::string before = columns_.pair.empty() ? "" : text_field(record, columns_.pair) + " ";
    const bool is_list = columns_.choices.size() == 1;
    if (is_list) {
      for (const std::string& choice : text_list_field(record, columns_.choices.front()))
        example.choices.push_back(before + choice);
    } else {
      for (const std::string& name : columns_.choices)
        example.choices.push_back(before + text_field(record, name));
    }
    std::int64_t& num_choices = found_.task.num_choices;
    if (num_choices == 0) num_choices = std::ssize(example.choices);
    base::require(num_choices >= 2, "{}: an example must have two choices or more: {}", record.place,
                  num_choices);
    base::require(num_choices == std::ssize(example.choices),
                  "{}: the example has {} choices, others have {}; every example must have as many",
                  record.place, example.choices.size(), num_choices);
    if (const auto label = choice_field(record, columns_.label, example.choices.size())) {
      example.label = *label;
      example.is_labelled = true;
    }
  }

  /// Numbers that are all -1 stand where labels are kept secret, as in GLUE's test files.
  void drop_secret_numbers() {
    const bool are_secret =
        found_.task.kind == TaskKind::Regression && labelled_ == Labelled::Optional &&
        std::ranges::all_of(found_.examples, [](const TaskExample& example) { return example.number == -1; });
    if (!are_secret) return;
    for (TaskExample& example : found_.examples) example.is_labelled = false;
  }

  void finish() {
    drop_secret_numbers();
    const auto num_labelled = std::ranges::count_if(found_.examples, &TaskExample::is_labelled);
    found_.is_labelled = num_labelled == std::ssize(found_.examples);
    if (num_labelled > 0 && !found_.is_labelled)
      remark("{} of {} examples have no label: nothing is scored",
             base::format_count(found_.examples.size() - static_cast<std::uint64_t>(num_labelled)),
             base::format_count(found_.examples.size()));
    found_.may_lack_answer = options_.no_answer == NoAnswer::Yes;
    if (found_.task.kind == TaskKind::QuestionAnswering && options_.no_answer == NoAnswer::Auto) {
      found_.may_lack_answer = std::ranges::any_of(found_.examples, [](const TaskExample& example) {
        return example.is_labelled && example.answers.empty();
      });
    }
  }

  template <typename... Args>
  void remark(fmt::format_string<Args...> format, Args&&... args) {
    found_.remarks.push_back(path_ + ": " + fmt::format(format, std::forward<Args>(args)...));
  }

  const std::string& path_;
  const TaskOptions& options_;
  Labelled labelled_;
  LabelNames names_;
  TaskColumns columns_;
  TaskExamples found_;
};

bool has_classes(TaskKind kind) {
  return kind == TaskKind::Classification || kind == TaskKind::TokenClassification;
}

TaskExamples read_with(ExampleReader& reader, const std::string& path, const TaskOptions& options) {
  TaskFileNotes notes;
  const std::string text = read_task_file(path, options, notes);
  TaskExamples examples = reader.read(text);
  if (notes.num_replaced > 0) {
    examples.remarks.push_back(fmt::format("{}: {} places that are not UTF-8 are read as U+FFFD", path,
                                           base::format_count(notes.num_replaced)));
  }
  return examples;
}

}  // namespace

TaskExamples read_training_examples(const std::string& path, TaskKind kind, const TaskOptions& options) {
  options.check(kind);
  describe::Task task;
  task.kind = kind;
  ExampleReader reader(path, task, LabelNames(), options, Labelled::Required);
  TaskExamples examples = read_with(reader, path, options);
  if (!has_classes(kind)) return examples;
  const std::vector<std::int32_t> final_ids = reader.names().number_in_order();
  examples.task.labels = reader.names().names();
  base::require(examples.task.labels.size() >= 2,
                "{}: all examples have the label '{}': there is nothing to learn", path,
                examples.task.labels.front());
  for (TaskExample& example : examples.examples) {
    example.label = final_ids[static_cast<std::size_t>(example.label)];
    for (std::int32_t& tag : example.tags) tag = final_ids[static_cast<std::size_t>(tag)];
  }
  return examples;
}

TaskExamples read_examples(const std::string& path, const describe::Task& task, const TaskOptions& options,
                           Labelled labelled) {
  options.check(task.kind);
  ExampleReader reader(path, task, LabelNames(task.labels), options, labelled);
  return read_with(reader, path, options);
}

}  // namespace plenum::data

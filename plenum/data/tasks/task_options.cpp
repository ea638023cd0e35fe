#include "plenum/data/tasks/task_options.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::data {
namespace {

using describe::TaskKind;

constexpr std::int64_t kUsualLength = 128;
constexpr std::int64_t kQuestionAnsweringLength = 384;

}  // namespace

base::OptionTable TaskOptions::table() {
  base::OptionTable options("task-data");
  options.add_choice("format", format,
                     {{"auto", TaskFormat::Auto},
                      {"tsv", TaskFormat::Tsv},
                      {"csv", TaskFormat::Csv},
                      {"jsonl", TaskFormat::JsonLines},
                      {"json", TaskFormat::Json},
                      {"conll", TaskFormat::Conll}},
                     "What the files are; auto: what their names end in says");
  options.add("text-column", text_column, "NAME",
              "Column or field with the text, the words, the question or the beginning; a number, from 1, "
              "where files have no header; the first of the usual names if not given");
  options.add("pair-column", pair_column, "NAME",
              "Column or field with the second text of a pair, the context of a question, or what stands "
              "before each choice; likewise");
  options.add("label-column", label_column, "NAME",
              "Column or field with the label, the number, the tags, the answers or the right choice; "
              "likewise; none: the files have no labels");
  options.add("id-column", id_column, "NAME", "Column or field with a name for each example; likewise");
  options.add("choice-columns", choice_columns, "NAME",
              "Field with a list of choices, or a column for each choice; likewise");
  options.add("tsv-quotes", quoted_tsv, "Read fields of .tsv in quotes as those of .csv are read");
  options.add_choice("invalid-utf8", invalid,
                     {{"refuse", InvalidTextRule::Refuse}, {"replace", InvalidTextRule::Replace}},
                     "Stop at bytes that are not UTF-8, or replace and count them");
  options.add(
      "max-length", max_length, 5, 1 << 20,
      "Maximum sequence length in tokens, including [CLS] and [SEP]; if not given 128, 384 for question "
      "answering, and never more than the model can read");
  options.add("stride", stride, 0, 1 << 20,
              "Tokens that two windows on a long text have in common (question answering, token "
              "classification); 128, or half a window if that is less, if not given");
  options.add_choice("too-long", too_long, {{"truncate", TooLong::Truncate}, {"refuse", TooLong::Refuse}},
                     "Leave out the end of texts that are too long, of a pair that of the longer one, or "
                     "stop (all tasks without windows)");
  options.add_choice("no-answer", no_answer,
                     {{"auto", NoAnswer::Auto}, {"yes", NoAnswer::Yes}, {"no", NoAnswer::No}},
                     "Whether questions may have no answer; auto: if one in the file has none");
  options.add("max-answer-length", max_answer_length, 1, 1 << 20, "Tokens of an answer at most");
  options.add("best-answers", num_best_answers, 1, 1000,
              "The most likely beginnings and ends of answers that are tried with each other");
  return options;
}

void TaskOptions::check(TaskKind kind) const {
  base::require(choice_columns.empty() || kind == TaskKind::MultipleChoice,
                "--choice-columns goes with --task multiple-choice");
  base::require(pair_column.empty() || kind != TaskKind::TokenClassification,
                "--pair-column does not go with --task token-classification, whose examples are one text");
  const bool has_windows = kind == TaskKind::TokenClassification || kind == TaskKind::QuestionAnswering;
  base::require(!stride || has_windows,
                "--stride goes with --task token-classification and question-answering");
  base::require(too_long == TooLong::Truncate || !has_windows,
                "--too-long refuse does not go with --task {}, which reads long texts in windows",
                describe::name_of(kind));
  base::require(no_answer == NoAnswer::Auto || kind == TaskKind::QuestionAnswering,
                "--no-answer goes with --task question-answering");
  base::require(format != TaskFormat::Conll || kind == TaskKind::TokenClassification,
                "--format conll goes with --task token-classification");
}

std::int64_t TaskOptions::max_length_for(TaskKind kind, std::int64_t max_positions) const {
  const bool has_questions = kind == TaskKind::QuestionAnswering;
  const std::int64_t usual = has_questions ? kQuestionAnsweringLength : kUsualLength;
  base::require(!max_length || *max_length <= max_positions,
                "--max-length {} is more than the model can read; give --max-length {} or less",
                max_length.value_or(0), max_positions);
  return max_length.value_or(std::min(max_positions, usual));
}

}  // namespace plenum::data

#include "plenum/data/tasks/task_scores.h"

#include <cstdint>
#include <string_view>

#include "plenum/base/check.h"
#include "plenum/data/tasks/answer_words.h"
#include "plenum/score/answers.h"
#include "plenum/score/classes.h"
#include "plenum/score/correlations.h"
#include "plenum/score/entities.h"

namespace plenum::data {
namespace {

using describe::TaskKind;
using Predictions = std::span<const Prediction>;

std::vector<TaskScore> score_classes(Predictions predictions, const TaskExamples& examples) {
  std::vector<std::int32_t> predicted;
  std::vector<std::int32_t> expected;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    predicted.push_back(predictions[i].label);
    expected.push_back(examples.examples[i].label);
  }
  std::vector<TaskScore> scores = {{"accuracy", score::accuracy(predicted, expected)}};
  if (examples.task.kind == TaskKind::MultipleChoice) return scores;
  if (examples.task.labels.size() == 2) scores.push_back({"f1", score::f1(predicted, expected, 1)});
  scores.push_back({"f1_macro", score::macro_f1(predicted, expected)});
  scores.push_back({"matthews", score::matthews(predicted, expected)});
  return scores;
}

std::vector<TaskScore> score_numbers(Predictions predictions, const TaskExamples& examples) {
  std::vector<double> predicted;
  std::vector<double> expected;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    predicted.push_back(predictions[i].number);
    expected.push_back(examples.examples[i].number);
  }
  return {{"pearson", score::pearson(predicted, expected)},
          {"spearman", score::spearman(predicted, expected)}};
}

std::vector<TaskScore> score_tags(Predictions predictions, const TaskExamples& examples) {
  const std::vector<std::string>& names = examples.task.labels;
  std::vector<std::int32_t> predicted;
  std::vector<std::int32_t> expected;
  score::EntityCounts entities;
  const auto named = [&](const std::vector<std::int32_t>& tags) {
    std::vector<std::string_view> texts;
    for (const std::int32_t tag : tags) texts.push_back(names[static_cast<std::size_t>(tag)]);
    return texts;
  };
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const std::vector<std::int32_t>& tags = examples.examples[i].tags;
    predicted.insert(predicted.end(), predictions[i].tags.begin(), predictions[i].tags.end());
    expected.insert(expected.end(), tags.begin(), tags.end());
    entities.add(named(predictions[i].tags), named(tags));
  }
  const TaskScore of_words{"accuracy", score::accuracy(predicted, expected)};
  if (!score::are_entity_tags(names)) return {of_words};
  return {
      {"f1", entities.f1()}, {"precision", entities.precision()}, {"recall", entities.recall()}, of_words};
}

std::vector<TaskScore> score_answers(Predictions predictions, const TaskExamples& examples) {
  double exact = 0;
  double f1 = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    std::vector<score::AnswerWords> expected;
    for (const AnswerSpan& answer : examples.examples[i].answers)
      expected.push_back(answer_words(answer.text));
    const score::AnswerWords predicted = answer_words(predictions[i].answer);
    exact += score::exact_match(predicted, expected);
    f1 += score::word_f1(predicted, expected);
  }
  const auto count = static_cast<double>(predictions.size());
  return {{"f1", f1 / count}, {"exact_match", exact / count}};
}

}  // namespace

std::vector<std::string> score_names(const describe::Task& task) {
  switch (task.kind) {
    case TaskKind::Classification:
      if (task.labels.size() == 2) return {"accuracy", "f1", "f1_macro", "matthews"};
      return {"accuracy", "f1_macro", "matthews"};
    case TaskKind::Regression:
      return {"pearson", "spearman"};
    case TaskKind::TokenClassification:
      if (score::are_entity_tags(task.labels)) return {"f1", "precision", "recall", "accuracy"};
      return {"accuracy"};
    case TaskKind::QuestionAnswering:
      return {"f1", "exact_match"};
    case TaskKind::MultipleChoice:
      break;
  }
  return {"accuracy"};
}

std::vector<TaskScore> score_predictions(Predictions predictions, const TaskExamples& examples) {
  base::check(predictions.size() == examples.examples.size() && examples.is_labelled,
              "only examples that all have labels can be scored: predictions={} examples={}",
              predictions.size(), examples.examples.size());
  switch (examples.task.kind) {
    case TaskKind::Regression:
      return score_numbers(predictions, examples);
    case TaskKind::TokenClassification:
      return score_tags(predictions, examples);
    case TaskKind::QuestionAnswering:
      return score_answers(predictions, examples);
    case TaskKind::Classification:
    case TaskKind::MultipleChoice:
      break;
  }
  return score_classes(predictions, examples);
}

}  // namespace plenum::data

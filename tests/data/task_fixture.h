#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "plenum/base/philox.h"
#include "plenum/data/tasks/task_examples.h"
#include "plenum/data/tasks/task_sequences.h"
#include "plenum/data/tokenizer/tokenizer.h"

#include "tests/data/golden.h"

namespace plenum::data {

/// The tokenizer of tests/golden/tokenizer_cases.json, in lower case and without accents.
inline Tokenizer golden_tokenizer(std::size_t setting = 0) {
  const nlohmann::json golden = read_golden("tokenizer_cases.json");
  return {Vocabulary(golden.at("vocabulary"), "golden"),
          golden_rules(golden.at("settings")[setting].at("rules"))};
}

/// Examples of a task as if they were read from a file.
inline TaskExamples examples_of(describe::Task task, std::vector<TaskExample> examples) {
  TaskExamples made;
  made.path = "made";
  made.task = std::move(task);
  for (std::size_t i = 0; i < examples.size(); ++i) {
    examples[i].place = "made:" + std::to_string(i + 1);
    examples[i].id = std::to_string(i);
    made.has_pairs = made.has_pairs || !examples[i].pair.empty() || !examples[i].choices.empty();
  }
  made.is_labelled = true;
  made.examples = std::move(examples);
  return made;
}

inline TaskExample text_example(std::string text, std::string pair = "") {
  TaskExample example;
  example.text = std::move(text);
  example.pair = std::move(pair);
  example.is_labelled = true;
  return example;
}

inline TaskExample words_example(std::vector<std::string> words) {
  TaskExample example;
  example.words = std::move(words);
  for (std::size_t i = 0; i < example.words.size(); ++i)
    example.tags.push_back(static_cast<std::int32_t>(i % 3));
  example.is_labelled = true;
  return example;
}

inline TaskExample choice_example(std::string text, std::vector<std::string> choices,
                                  std::int32_t label = 0) {
  TaskExample example = text_example(std::move(text));
  example.choices = std::move(choices);
  example.label = label;
  return example;
}

inline describe::Task task_of(describe::TaskKind kind) {
  describe::Task task;
  task.kind = kind;
  if (kind == describe::TaskKind::Classification) task.labels = {"no", "yes"};
  if (kind == describe::TaskKind::TokenClassification) task.labels = {"B-X", "I-X", "O"};
  if (kind == describe::TaskKind::MultipleChoice) task.num_choices = 3;
  return task;
}

inline constexpr describe::TaskKind kAllTasks[] = {
    describe::TaskKind::Classification, describe::TaskKind::Regression,
    describe::TaskKind::TokenClassification, describe::TaskKind::QuestionAnswering,
    describe::TaskKind::MultipleChoice};

/// Examples of lengths as they come in texts, a function of `index`.
inline TaskExamples random_examples(describe::TaskKind kind, std::size_t count, std::uint64_t index = 0) {
  const base::RandomFunction random(23, base::Purpose::SyntheticText, index);
  const std::vector<std::string> kWords = {"who", "café", "Wörter", "in", "a", "model", "of", "42", "x-ray"};
  std::vector<TaskExample> examples;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t draw = 0;
    const auto words = [&](std::size_t most) {
      std::vector<std::string> drawn(1 + random(i, draw++)[0] % most);
      for (std::string& word : drawn) word = kWords[random(i, draw++)[0] % kWords.size()];
      return drawn;
    };
    const auto text = [&](std::size_t most) { return fmt::format("{}", fmt::join(words(most), " ")); };
    TaskExample example =
        kind == describe::TaskKind::TokenClassification ? words_example(words(60)) : text_example(text(20));
    if (kind == describe::TaskKind::QuestionAnswering) {
      example.text = text(4);
      example.pair = text(60);
      if (i % 4 != 0)
        example.answers = {{.begin = 0, .text = example.pair.substr(0, example.pair.find(' '))}};
    }
    if (kind == describe::TaskKind::MultipleChoice) example.choices = {text(9), text(9), text(9)};
    example.label = static_cast<std::int32_t>(i % 2);
    example.number = static_cast<double>(i) / 8;
    examples.push_back(std::move(example));
  }
  return examples_of(task_of(kind), std::move(examples));
}

}  // namespace plenum::data

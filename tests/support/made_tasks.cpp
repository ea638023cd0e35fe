#include "tests/support/made_tasks.h"

#include <array>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plenum::test {
namespace {

using describe::TaskKind;

constexpr std::array kNoise = {"the", "a", "of", "on", "tree", "river", "stone", "house", "walks", "sees"};
constexpr std::array kGood = {"good", "fine", "great"};
constexpr std::array kBad = {"bad", "poor", "awful"};
constexpr std::array kNames = {"anna", "peter", "maria"};
constexpr std::array kFamilies = {"smith", "jones"};
constexpr std::array kPlaces = {"paris", "oslo", "rome"};
constexpr std::array kQuestionWords = {"where", "is", "she", "?"};

class Words {
 public:
  explicit Words(unsigned seed) : random_(seed) {}

  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  template <std::size_t kSize>
  std::string one_of(const std::array<const char*, kSize>& words) {
    return words[static_cast<std::size_t>(below(static_cast<int>(kSize)))];
  }
  std::vector<std::string> noise(int least, int most) {
    std::vector<std::string> words;
    for (int left = least + below(most - least + 1); left > 0; --left) words.push_back(one_of(kNoise));
    return words;
  }
  /// Noise with a word somewhere in it.
  std::string around(const std::string& word) {
    std::vector<std::string> words = noise(1, 8);
    words.insert(words.begin() + below(static_cast<int>(words.size()) + 1), word);
    return fmt::format("{}", fmt::join(words, " "));
  }

 private:
  std::mt19937 random_;
};

/// A record of a delimited file, or an object of JSON.
std::string record_of(const MadeTask& task, const std::string& name, const std::string& label,
                      const std::string& text, bool is_labelled) {
  if (task.extension == ".jsonl") {
    const std::string labelled = is_labelled ? fmt::format(", \"{}\": {}", name, label) : "";
    return fmt::format("{{\"text\": \"{}\"{}}}\n", text, labelled);
  }
  std::string plain = label;
  std::erase(plain, '"');
  return is_labelled ? fmt::format("{}\t{}\n", plain, text) : text + "\n";
}

std::string classified(Words& words, const MadeTask& task, bool is_labelled) {
  const bool is_good = words.below(2) == 1;
  const std::string text = words.around(is_good ? words.one_of(kGood) : words.one_of(kBad));
  return record_of(task, "label", is_good ? "\"praise\"" : "\"blame\"", text, is_labelled);
}

/// How many of the words are good.
std::string measured(Words& words, const MadeTask& task, bool is_labelled) {
  std::vector<std::string> sentence = words.noise(1, 6);
  const int num_good = words.below(4);
  for (int i = 0; i < num_good; ++i) sentence.push_back(words.one_of(kGood));
  const std::string text = fmt::format("{}", fmt::join(sentence, " "));
  return record_of(task, "score", fmt::format("{:.2f}", 0.5 * num_good), text, is_labelled);
}

std::string tagged(Words& words, const MadeTask& task, bool is_labelled) {
  std::string lines;
  std::vector<std::string> quoted_words;
  std::vector<std::string> quoted_tags;
  const auto add = [&](const std::string& word, const char* tag) {
    lines += is_labelled ? fmt::format("{} {}\n", word, tag) : word + "\n";
    quoted_words.push_back(fmt::format("\"{}\"", word));
    quoted_tags.push_back(fmt::format("\"{}\"", tag));
  };
  for (int part = 0; part < 3; ++part) {
    for (const std::string& word : words.noise(0, 3)) add(word, "O");
    if (words.below(2) == 0) {
      add(words.one_of(kNames), "B-PER");
      if (words.below(2) == 0) add(words.one_of(kFamilies), "I-PER");
    } else {
      add(words.one_of(kPlaces), "B-LOC");
    }
  }
  if (task.extension != ".jsonl") return lines + "\n";
  const std::string tags = is_labelled ? fmt::format(", \"tags\": [{}]", fmt::join(quoted_tags, ", ")) : "";
  return fmt::format("{{\"tokens\": [{}]{}}}\n", fmt::join(quoted_words, ", "), tags);
}

/// The answer is the one place that the context names.
std::string asked(Words& words, bool is_labelled, int number) {
  const std::string place = words.one_of(kPlaces);
  const std::string context = words.around(place);
  const std::string answers = is_labelled
                                  ? fmt::format(R"(, "answers": {{"text": ["{}"], "answer_start": [{}]}})",
                                                place, context.find(place))
                                  : "";
  return fmt::format("{{\"id\": \"q{}\", \"question\": \"{}\", \"context\": \"{}\"{}}}\n", number,
                     fmt::join(kQuestionWords, " "), context, answers);
}

std::string chosen(Words& words, bool is_labelled) {
  constexpr int kChoices = 3;
  const int right = words.below(kChoices);
  std::vector<std::string> choices;
  for (int choice = 0; choice < kChoices; ++choice) {
    choices.push_back(
        fmt::format("\"{}\"", words.around(choice == right ? words.one_of(kGood) : words.one_of(kBad))));
  }
  return fmt::format("{{\"question\": \"{}\", \"choices\": [{}]{}}}\n", fmt::join(words.noise(1, 3), " "),
                     fmt::join(choices, ", "), is_labelled ? fmt::format(", \"label\": {}", right) : "");
}

std::string examples_of(const MadeTask& task, unsigned seed, int num_examples, bool is_labelled) {
  Words words(seed);
  std::string text;
  if (task.extension == ".tsv") {
    const bool is_measured = task.kind == TaskKind::Regression;
    text = is_labelled ? fmt::format("{}\ttext\n", is_measured ? "score" : "label") : "text\n";
  }
  for (int i = 0; i < num_examples; ++i) {
    switch (task.kind) {
      case TaskKind::Classification:
        text += classified(words, task, is_labelled);
        break;
      case TaskKind::Regression:
        text += measured(words, task, is_labelled);
        break;
      case TaskKind::TokenClassification:
        text += tagged(words, task, is_labelled);
        break;
      case TaskKind::QuestionAnswering:
        text += asked(words, is_labelled, i);
        break;
      case TaskKind::MultipleChoice:
        text += chosen(words, is_labelled);
        break;
    }
  }
  return text;
}

}  // namespace

std::vector<MadeTask> made_tasks() {
  return {{TaskKind::Classification, ".tsv", "accuracy"},
          {TaskKind::Regression, ".tsv", "pearson"},
          {TaskKind::TokenClassification, ".conll", "f1"},
          {TaskKind::QuestionAnswering, ".jsonl", "f1"},
          {TaskKind::MultipleChoice, ".jsonl", "accuracy"}};
}

std::string made_examples(const MadeTask& task, unsigned seed, int num_examples) {
  return examples_of(task, seed, num_examples, true);
}

std::string without_labels(const MadeTask& task, unsigned seed, int num_examples) {
  return examples_of(task, seed, num_examples, false);
}

std::string made_vocabulary() {
  std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  const auto add = [&](const auto& words) {
    for (const char* word : words) text += std::string(word) + "\n";
  };
  add(kNoise);
  add(kGood);
  add(kBad);
  add(kNames);
  add(kFamilies);
  add(kPlaces);
  add(std::array{"where", "is", "she", "?"});
  return text;
}

}  // namespace plenum::test

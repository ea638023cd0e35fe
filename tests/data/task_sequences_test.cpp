#include "plenum/data/tasks/task_sequences.h"

#include <map>

#include <gtest/gtest.h>

#include "plenum/data/tasks/windows.h"
#include "plenum/data/tokenizer/aligned_encoder.h"
#include "plenum/describe/objective.h"

#include "tests/data/task_fixture.h"
#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

using describe::GroupLabel;
using describe::TaskKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Ids = std::vector<TokenId>;

Ids ids_of(const TaskSequences& sequences, std::uint64_t id, std::vector<std::uint8_t>* segments = nullptr) {
  Ids ids;
  std::vector<std::uint8_t> own;
  sequences.append(id, ids, segments != nullptr ? *segments : own);
  return ids;
}

struct Labels {
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> labels;
};

Labels labels_of(const TaskSequences& sequences, std::uint64_t id) {
  Labels found;
  sequences.task_labels()->append_labels(id, found.positions, found.labels);
  EXPECT_EQ(std::ssize(found.labels), sequences.task_labels()->num_labels(id));
  return found;
}

TEST(AlignedEncoder, GivesTheOffsetsOfHuggingFaceAndTheIdsOfEncoder) {
  const nlohmann::json texts = read_golden("tokenizer_cases.json").at("texts");
  const nlohmann::json settings = read_golden("task_cases.json").at("offsets");
  ASSERT_EQ(settings.size(), 3U);
  for (const nlohmann::json& setting : settings) {
    const Tokenizer tokenizer(Vocabulary(read_golden("tokenizer_cases.json").at("vocabulary"), "golden"),
                              golden_rules(setting.at("rules")));
    AlignedEncoder aligned(tokenizer);
    Encoder encoder(tokenizer);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto text = texts[i].get<std::string>();
      std::vector<AlignedToken> tokens;
      aligned.encode(text, tokens);
      std::vector<std::pair<std::int32_t, std::int32_t>> offsets;
      Ids ids;
      for (const AlignedToken& token : tokens) {
        offsets.emplace_back(token.begin, token.end);
        ids.push_back(token.id);
      }
      Ids expected;
      encoder.encode(text, expected);
      EXPECT_EQ(ids, expected) << text;
      const auto golden = setting.at("offsets")[i].get<std::vector<std::pair<std::int32_t, std::int32_t>>>();
      EXPECT_EQ(offsets, golden) << text << setting.at("rules");
    }
  }
}

TEST(Windows, CoverEveryTokenAndOverlapByTheStride) {
  EXPECT_THAT(cut_windows(0, 4, 1), ElementsAre(TextWindow{0, 0}));
  EXPECT_THAT(cut_windows(4, 4, 1), ElementsAre(TextWindow{0, 4}));
  EXPECT_THAT(cut_windows(5, 4, 1), ElementsAre(TextWindow{0, 4}, TextWindow{3, 5}));
  EXPECT_THAT(cut_windows(10, 4, 0), ElementsAre(TextWindow{0, 4}, TextWindow{4, 8}, TextWindow{8, 10}));
}

TEST(Windows, GiveATokenToTheOneWithMostContext) {
  const std::vector<TextWindow> windows = cut_windows(10, 6, 4);  // 0-6 2-8 4-10
  std::vector<std::size_t> chosen;
  for (std::int32_t token = 0; token < 10; ++token) chosen.push_back(widest_context(token, windows));
  EXPECT_THAT(chosen, ElementsAre(0, 0, 0, 0, 1, 1, 2, 2, 2, 2));
}

TEST(TaskSequences, LayOutTextsAndPairsAsHuggingFaceDoes) {
  const Tokenizer tokenizer = golden_tokenizer();
  const nlohmann::json cases = read_golden("task_cases.json").at("pairs");
  ASSERT_GT(cases.size(), 50U);
  int num_truncated = 0;
  for (const nlohmann::json& one : cases) {
    TaskExamples examples = examples_of(task_of(TaskKind::Classification), {text_example(one.at("first"))});
    if (!one.at("second").is_null()) {
      examples.examples[0].pair = one.at("second");
      examples.has_pairs = true;
    }
    const TaskSequences sequences(examples, tokenizer, one.at("max_length"), {});
    std::vector<std::uint8_t> segments;
    EXPECT_EQ(ids_of(sequences, 0, &segments), one.at("ids").get<Ids>()) << one;
    EXPECT_EQ(segments, one.at("segments").get<std::vector<std::uint8_t>>()) << one;
    num_truncated += sequences.remarks().empty() ? 0 : 1;
  }
  EXPECT_GT(num_truncated, 20);
}

TEST(TaskSequences, LabelTheFirstTokenOfEachWordAsHuggingFaceFindsIt) {
  const Tokenizer tokenizer = golden_tokenizer();
  const nlohmann::json cases = read_golden("task_cases.json").at("words");
  for (const nlohmann::json& one : cases) {
    const TaskExamples examples =
        examples_of(task_of(TaskKind::TokenClassification), {words_example(one.at("words"))});
    const TaskSequences sequences(examples, tokenizer, 4096, {});
    EXPECT_EQ(ids_of(sequences, 0), one.at("ids").get<Ids>());
    Labels expected;
    std::int32_t before = -1;
    const auto word_ids = one.at("word_ids").get<std::vector<std::int32_t>>();
    for (std::size_t i = 0; i < word_ids.size(); ++i) {
      if (word_ids[i] >= 0 && word_ids[i] != before) {
        expected.positions.push_back(static_cast<std::int32_t>(i));
        expected.labels.push_back(word_ids[i] % 3);
      }
      before = word_ids[i];
    }
    const Labels found = labels_of(sequences, 0);
    EXPECT_EQ(found.positions, expected.positions) << one;
    EXPECT_EQ(found.labels, expected.labels) << one;
  }
}

TEST(TaskSequences, ReadWordsThatNormalisationDropsAsUnknown) {
  const Tokenizer tokenizer = golden_tokenizer();
  const TaskExamples examples =
      examples_of(task_of(TaskKind::TokenClassification), {words_example({"a", "\xE2\x80\x8B", "a"})});
  const TaskSequences sequences(examples, tokenizer, 16, {});
  EXPECT_EQ(ids_of(sequences, 0)[2], tokenizer.vocabulary().special().unknown);
  EXPECT_THAT(labels_of(sequences, 0).positions, ElementsAre(1, 2, 3));
  EXPECT_THAT(sequences.remarks(), ElementsAre(HasSubstr("1 words of which normalisation leaves nothing")));
}

TEST(TaskSequences, CutQuestionsIntoTheWindowsOfHuggingFaceWithItsLabels) {
  const Tokenizer tokenizer = golden_tokenizer();
  const nlohmann::json cases = read_golden("task_cases.json").at("questions");
  int num_answered = 0;
  int num_windows = 0;
  for (const nlohmann::json& one : cases) {
    TaskExample example = text_example(one.at("question"), one.at("context"));
    if (!one.at("answer").is_null())
      example.answers = {{.begin = one.at("answer")[0], .text = one.at("answer")[1]}};
    const TaskExamples examples = examples_of(task_of(TaskKind::QuestionAnswering), {example});
    TaskOptions options;
    options.stride = one.at("stride").get<std::int64_t>();
    const TaskSequences sequences(examples, tokenizer, one.at("max_length"), options);
    ASSERT_EQ(sequences.num_sequences(), one.at("windows").size()) << one;
    for (std::uint64_t id = 0; id < sequences.num_sequences(); ++id) {
      const nlohmann::json& window =
          one.at("windows")[static_cast<std::size_t>(sequences.sequence(id).window)];
      EXPECT_EQ(ids_of(sequences, id), window.at("ids").get<Ids>()) << one;
      const Labels labels = labels_of(sequences, id);
      std::vector<std::int32_t> expected(labels.labels.size());
      expected[0] |= GroupLabel::kFirst;
      expected[window.at("labels")[0].get<std::size_t>()] |= GroupLabel::answer(0);
      expected[window.at("labels")[1].get<std::size_t>()] |= GroupLabel::answer(1);
      EXPECT_EQ(labels.labels, expected) << one;
      num_answered += window.at("labels")[0] != 0 ? 1 : 0;
      ++num_windows;
    }
  }
  EXPECT_GT(num_answered, 20);
  EXPECT_GT(num_windows, 100);
}

TEST(TaskSequences, FindTheAnswersToSeveralQuestionsOnOneContext) {
  const Tokenizer tokenizer = golden_tokenizer();
  const std::string context = "a b c d e f g h";
  std::vector<TaskExample> questions;
  for (std::size_t i = 0; i < 8; ++i) {
    questions.push_back(text_example("a", i == 4 ? "h g f e d c b a" : context));
    questions.back().answers = {{.begin = 2 * i, .text = questions.back().pair.substr(2 * i, 1)}};
  }
  const TaskExamples examples = examples_of(task_of(TaskKind::QuestionAnswering), questions);
  const TaskSequences sequences(examples, tokenizer, 16, {});
  EXPECT_EQ(sequences.encoded().offsets.size(), 3U * 8) << "of runs of equal contexts";
  for (std::uint64_t id = 0; id < sequences.num_sequences(); ++id) {
    const EncodedSequence& sequence = sequences.sequence(id);
    const TaskExample& example = examples.examples[sequence.example];
    const auto token = static_cast<std::size_t>(sequence.answer_begin - sequence.first_text);
    EXPECT_EQ(sequence.answer_begin, sequence.answer_end);
    EXPECT_EQ(sequences.encoded().offsets[sequence.first_offset + token].begin,
              static_cast<std::int32_t>(example.answers[0].begin));
  }
}

TEST(TaskSequences, LabelEveryWordOnceOverItsWindows) {
  const Tokenizer tokenizer = golden_tokenizer();
  const TaskExamples examples = random_examples(TaskKind::TokenClassification, 50);
  for (const std::int64_t max_length : {8, 17, 512}) {
    const TaskSequences sequences(examples, tokenizer, max_length, {});
    std::map<std::pair<std::size_t, std::int32_t>, int> times;
    for (std::uint64_t id = 0; id < sequences.num_sequences(); ++id) {
      const EncodedSequence& sequence = sequences.sequence(id);
      const Labels labels = labels_of(sequences, id);
      for (std::size_t i = 0; i < labels.labels.size(); ++i) {
        const EncodedWord& word = sequences.encoded().words[sequence.first_word + i];
        EXPECT_EQ(labels.labels[i], word.word % 3);
        EXPECT_LT(word.position, sequence.num_tokens - 1);
        ++times[{sequence.example, word.word}];
      }
    }
    std::size_t num_words = 0;
    for (const TaskExample& example : examples.examples) num_words += example.words.size();
    EXPECT_EQ(times.size(), num_words);
    for (const auto& [word, count] : times) EXPECT_EQ(count, 1);
    EXPECT_EQ(sequences.remarks().empty(), max_length == 512);
  }
}

TEST(TaskSequences, LayOutChoicesEndToEnd) {
  const Tokenizer tokenizer = golden_tokenizer();
  const TaskExamples examples =
      examples_of(task_of(TaskKind::MultipleChoice), {choice_example("a b", {"a", "a a a", "a a"}, 1)});
  const TaskSequences sequences(examples, tokenizer, 7, {});
  EXPECT_EQ(sequences.length(0), 6 + 7 + 7);
  EXPECT_EQ(sequences.task_labels()->sequences_per_example(), 3);
  EXPECT_EQ(sequences.task_labels()->longest_sequence(), 7);
  EXPECT_THAT(sequences.task_labels()->sequence_lengths(0), ElementsAre(6, 7, 7));
  std::vector<std::uint8_t> segments;
  const Ids ids = ids_of(sequences, 0, &segments);
  EXPECT_EQ(ids[6], tokenizer.vocabulary().special().cls);
  EXPECT_THAT(std::vector(segments.begin() + 6, segments.begin() + 13), ElementsAre(0, 0, 0, 0, 1, 1, 1));
  const Labels labels = labels_of(sequences, 0);
  EXPECT_THAT(labels.positions, ElementsAre(0, 6, 13));
  EXPECT_THAT(labels.labels, ElementsAre(GroupLabel::kFirst, GroupLabel::answer(0), 0));
  EXPECT_THAT(sequences.remarks(),
              ElementsAre(HasSubstr("truncated 1 of 1 examples to 7 tokens, which leaves out 1 ")));
}

TEST(TaskSequences, AreNumberedByLengthAndKeepToTheirBounds) {
  const Tokenizer tokenizer = golden_tokenizer();
  for (const TaskKind kind : kAllTasks) {
    const TaskExamples examples = random_examples(kind, 60);
    const TaskSequences sequences(examples, tokenizer, 32, {});
    const TaskLabels& labels = *sequences.task_labels();
    std::int64_t before = 0;
    for (std::uint64_t id = 0; id < sequences.num_sequences(); ++id) {
      EXPECT_GE(sequences.length(id), before);
      before = sequences.length(id);
      EXPECT_LE(labels.num_labels(id), labels.most_labels(before));
      EXPECT_EQ(std::ssize(ids_of(sequences, id)), before);
      for (const std::int32_t length : labels.sequence_lengths(id))
        EXPECT_LE(length, labels.longest_sequence());
    }
    EXPECT_EQ(sequences.histogram().num_sequences(), sequences.num_sequences());
    EXPECT_LE(labels.longest_sequence(), 32);
    for (std::int64_t length = 1; length < 200; ++length)
      EXPECT_LE(labels.most_labels(length - 1), labels.most_labels(length));
  }
}

TEST(TaskSequences, HaveAFingerprintOfTokensAndLabels) {
  const Tokenizer tokenizer = golden_tokenizer();
  for (const TaskKind kind : kAllTasks) {
    TaskExamples examples = random_examples(kind, 9);
    const auto fingerprint = [&](std::int64_t max_length) {
      return TaskSequences(examples, tokenizer, max_length, {}).fingerprint();
    };
    const std::uint64_t before = fingerprint(32);
    EXPECT_EQ(fingerprint(32), before);
    EXPECT_NE(fingerprint(24), before);
    TaskExample& changed = examples.examples[4];
    changed.label = 1 - changed.label;
    changed.number += 1;
    if (!changed.tags.empty()) changed.tags[0] = 2 - changed.tags[0];
    if (kind == TaskKind::QuestionAnswering)
      changed.answers = {{.begin = 0, .text = changed.pair.substr(0, 1)}};
    EXPECT_NE(fingerprint(32), before) << describe::name_of(kind);
  }
}

TEST(TaskSequences, HaveAFingerprintOfAllAnswersThatCount) {
  const Tokenizer tokenizer = golden_tokenizer();
  TaskExamples examples = random_examples(TaskKind::QuestionAnswering, 9);
  const auto fingerprint = [&] { return TaskSequences(examples, tokenizer, 32, {}).fingerprint(); };
  TaskExample& changed = examples.examples[4];
  changed.answers = {{.begin = 0, .text = changed.pair.substr(0, 1)}};
  const std::uint64_t before = fingerprint();
  changed.answers.push_back({.begin = 0, .text = changed.pair.substr(0, 2)});
  EXPECT_NE(fingerprint(), before) << "predictions are scored by the best of them";
}

TEST(TaskSequences, RefuseWhatSequencesHaveNoRoomFor) {
  const Tokenizer tokenizer = golden_tokenizer();
  const TaskExamples long_text =
      examples_of(task_of(TaskKind::Classification), {text_example("a"), text_example("a a a a a a a")});
  TaskOptions options;
  options.too_long = TooLong::Refuse;
  EXPECT_THAT(test::user_error_of([&] { TaskSequences(long_text, tokenizer, 8, options); }),
              HasSubstr("made:2: the example has 1 tokens more"));
  EXPECT_EQ(test::user_error_of([&] { TaskSequences(long_text, tokenizer, 9, options); }), "no error");

  const TaskExamples question =
      examples_of(task_of(TaskKind::QuestionAnswering), {text_example("a a a a a", "a a a")});
  EXPECT_THAT(
      test::user_error_of([&] { TaskSequences(question, tokenizer, 8, {}); }),
      HasSubstr("made:1: the question has 5 tokens, which leave no room for its context in sequences of 8"));
  EXPECT_EQ(TaskSequences(question, tokenizer, 9, {}).num_sequences(), 3U);
  options = {};
  options.stride = 2;
  EXPECT_THAT(test::user_error_of([&] { TaskSequences(question, tokenizer, 10, options); }),
              HasSubstr("but --stride is 2"));
  const TaskExamples words =
      examples_of(task_of(TaskKind::TokenClassification), {words_example({"a", "a", "a"})});
  EXPECT_THAT(test::user_error_of([&] { TaskSequences(words, tokenizer, 4, options); }),
              HasSubstr("--stride must be less than a window, 2 tokens: 2"));
}

}  // namespace
}  // namespace plenum::data

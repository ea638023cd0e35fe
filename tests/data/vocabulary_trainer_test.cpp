#include "plenum/data/tokenizer/vocabulary_trainer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "tests/data/golden.h"
#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

Vocabulary train(const std::vector<std::string>& texts, const TrainVocabularyOptions& options) {
  WordCounter counter{NormalizerRules{}};
  for (const std::string& text : texts) counter.add(text);
  base::SilentProgress progress;
  return train_vocabulary(counter, options, progress);
}

/// The `##` characters of a vocabulary in the order of their ids.
std::vector<std::string> continuing_order(const std::vector<std::string>& tokens) {
  std::vector<std::string> order;
  for (const std::string& token : tokens) {
    if (!token.starts_with(kContinuingPrefix)) continue;
    const std::string rest = token.substr(kContinuingPrefix.size());
    if (decode_utf8(rest.data(), rest.data() + rest.size()).length == rest.size()) order.push_back(rest);
  }
  return order;
}

TEST(WordCounter, CountsNormalisedWords) {
  WordCounter counter{NormalizerRules{}};
  counter.add("The cat, the CAT");
  counter.add("a verylongwordofmorethansixteenbytes the");
  const std::vector<WordCounter::CountedWord> words = counter.sorted();
  std::vector<std::pair<std::string, std::uint64_t>> found;
  for (const auto& word : words) found.emplace_back(word.word, word.count);
  EXPECT_EQ(found,
            (std::vector<std::pair<std::string, std::uint64_t>>{
                {",", 1}, {"a", 1}, {"cat", 2}, {"the", 3}, {"verylongwordofmorethansixteenbytes", 1}}));
  EXPECT_EQ(counter.total(), 8u);
}

TEST(WordCounter, MergesWithoutLosingAWord) {
  WordCounter whole{NormalizerRules{}};
  WordCounter left{NormalizerRules{}};
  WordCounter right{NormalizerRules{}};
  for (int i = 0; i < 20000; ++i) {
    const std::string text = fmt::format("w{} {:y>{}}", i % 7001, "", i % 40);
    whole.add(text);
    (i % 3 == 0 ? left : right).add(text);
  }
  left.merge(std::move(right));
  EXPECT_EQ(right.num_words(), 0u);
  ASSERT_EQ(left.num_words(), whole.num_words());
  EXPECT_EQ(left.total(), whole.total());
  const auto a = left.sorted();
  const auto b = whole.sorted();
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].word, b[i].word);
    ASSERT_EQ(a[i].count, b[i].count);
  }
}

// Hugging Face's vocabulary of the same texts, token for token, once its order of ## characters is given.
TEST(TrainVocabulary, GivesTheTokensOfHuggingFaceInItsOrder) {
  const nlohmann::json golden = read_golden("tokenizer_cases.json");
  const auto expected = golden.at("vocabulary").get<std::vector<std::string>>();
  const auto corpus = golden.at("corpus").get<std::vector<std::string>>();
  TrainVocabularyOptions options{.vocabulary_size = 900};
  options.continuing_order = continuing_order(expected);
  EXPECT_EQ(train(corpus, options).tokens(), expected);
}

TEST(TrainVocabulary, BreaksTiesByCodePointWhenNoOrderIsGiven) {
  const Vocabulary vocabulary = train({"ba ab"}, {.vocabulary_size = 100});
  const std::vector<std::string> expected = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",
                                             "b",     "##a",   "##b",   "ab",    "ba"};
  EXPECT_EQ(vocabulary.tokens(), expected);
}

TEST(TrainVocabulary, MergesTheMostFrequentPairFirst) {
  const Vocabulary vocabulary = train({"low low low newest newest"}, {.vocabulary_size = 30});
  // The pairs of "low" occur three times, those of "newest" twice.
  const TokenId low = vocabulary.find("low");
  const TokenId newest = vocabulary.find("newest");
  ASSERT_GE(low, 0);
  ASSERT_GE(newest, 0);
  EXPECT_LT(low, newest);
}

TEST(TrainVocabulary, StopsAtTheMinimumFrequency) {
  const std::vector<std::string> texts = {"ab ab ab cd cd ef"};
  EXPECT_GE(train(texts, {.vocabulary_size = 100, .min_frequency = 2}).find("cd"), 0);
  EXPECT_LT(train(texts, {.vocabulary_size = 100, .min_frequency = 2}).find("ef"), 0);
  EXPECT_LT(train(texts, {.vocabulary_size = 100, .min_frequency = 3}).find("cd"), 0);
}

TEST(TrainVocabulary, KeepsTheMostFrequentCharacters) {
  const Vocabulary vocabulary = train({"aaa bb c"}, {.vocabulary_size = 100, .limit_alphabet = 2});
  EXPECT_GE(vocabulary.find("b"), 0);
  EXPECT_LT(vocabulary.find("c"), 0);
}

TEST(TrainVocabulary, RefusesWhatCannotWork) {
  EXPECT_THROW(train({""}, {}), base::UserError);
  test::expect_user_error([&] { train({"abcdefgh"}, {.vocabulary_size = 8}); },
                          "a vocabulary of 8 tokens is too small");
  std::string long_word;
  for (int i = 0; i < 200; ++i) long_word += static_cast<char>('a' + i % 26);
  for (const std::int64_t size : {std::int64_t{30}, std::int64_t{300}}) {
    test::expect_user_error(
        [&] { train({long_word}, {.vocabulary_size = size}); },
        "every word has more than 100 characters, which makes it unknown; is there no space "
        "between words? 'abcdef");
  }
  EXPECT_GT(train({long_word + " and"}, {.vocabulary_size = 300}).size(), 50U);
}

}  // namespace
}  // namespace plenum::data

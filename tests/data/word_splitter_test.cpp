#include "plenum/data/tokenizer/word_splitter.h"

#include <random>

#include <gtest/gtest.h>

#include "tests/data/golden.h"

namespace plenum::data {
namespace {

using Words = std::vector<std::string>;

Words split(const std::string& text, const NormalizerRules& rules = {}, std::size_t max_chars = 100) {
  const Normalizer normalizer(rules);
  WordSplitter splitter(normalizer, max_chars);
  WordCollector collector;
  splitter.split(text, collector);
  return collector.words;
}

TEST(WordKey, KnowsTheLengthOfItsWord) {
  for (std::size_t size = 1; size <= WordKey::kMaxBytes; ++size) {
    const std::string word(size, 'w');
    WordKey key;
    std::memcpy(&key, word.data(), size);
    EXPECT_EQ(key.size(), size);
    EXPECT_EQ(std::string(key.bytes().data(), key.size()), word);
  }
}

TEST(WordSplitter, SplitsAtSpacesAndSetsPunctuationApart) {
  EXPECT_EQ(split("Hello,  World!\tdon't"), (Words{"hello", ",", "world", "!", "don", "'", "t"}));
  EXPECT_EQ(split("a_b$c"), (Words{"a", "_", "b", "$", "c"}));
  EXPECT_EQ(split(""), Words{});
  EXPECT_EQ(split(" \n\r\t "), Words{});
}

TEST(WordSplitter, KeepsCaseAndAccentsWhenCased) {
  const NormalizerRules cased{.strip_accents = std::nullopt, .lowercase = false};
  EXPECT_EQ(split("Äpfel ÉTÉ", cased), (Words{"Äpfel", "ÉTÉ"}));
  EXPECT_EQ(split("Äpfel ÉTÉ"), (Words{"apfel", "ete"}));
  EXPECT_EQ(split("Äpfel ÉTÉ", {.strip_accents = true, .lowercase = false}), (Words{"Apfel", "ETE"}));
  EXPECT_EQ(split("Äpfel ÉTÉ", {.strip_accents = false, .lowercase = true}), (Words{"äpfel", "été"}));
}

TEST(WordSplitter, DropsControlCharactersInsideWords) {
  EXPECT_EQ(split("foo\x01"
                  "bar\u200d\u00ad baz\ufffd"),
            (Words{"foobar", "baz"}));
  EXPECT_EQ(split(std::string("a\0b", 3)), (Words{"ab"}));
}

TEST(WordSplitter, KeepsNulApartFromPaddingWithoutCleaning) {
  NormalizerRules rules;
  rules.clean_text = false;
  EXPECT_EQ(split(std::string("a\0 a", 4), rules), (Words{std::string("a\0", 2), "a"}));
}

TEST(WordSplitter, SetsIdeographsApart) {
  EXPECT_EQ(split("ab中文cd"), (Words{"ab", "中", "文", "cd"}));
  NormalizerRules rules;
  rules.handle_chinese_chars = false;
  EXPECT_EQ(split("ab中文cd", rules), (Words{"ab中文cd"}));
}

TEST(WordSplitter, DecomposesHangul) {
  EXPECT_EQ(split("한국"), (Words{"\u1112\u1161\u11ab\u1100\u116e\u11a8"}));
}

// U+302E (class 224) and U+1D165 (216) are marks that stay; a dropped starter between them keeps them apart.
TEST(WordSplitter, SortsMarksThatStayUpToTheNextStarter) {
  EXPECT_EQ(split("a\u302e\U0001d165"), (Words{"a\U0001d165\u302e"}));
  EXPECT_EQ(split("a\u302e\u0301\U0001d165"), (Words{"a\U0001d165\u302e"}));
  EXPECT_EQ(split("a\u302e\u0941\U0001d165"), (Words{"a\u302e\U0001d165"}));
  EXPECT_EQ(split("a\u302eb\U0001d165"), (Words{"a\u302eb\U0001d165"}));
}

TEST(WordSplitter, ReportsWordsOverTheLimitWithoutKeepingThem) {
  EXPECT_EQ(split(std::string(100, 'x') + " " + std::string(101, 'y') + " z"),
            (Words{std::string(100, 'x'), "<oversized>", "z"}));
  EXPECT_EQ(split("ééé éééé", {}, 3), (Words{"eee", "<oversized>"}));
}

TEST(WordSplitter, ReadsInvalidBytesAsDroppedReplacements) {
  EXPECT_EQ(split("ab\xFF"
                  "cd \xE4\xB8 e\xC3"),
            (Words{"abcd", "e"}));
}

// The eight-byte scan and the table must agree wherever a word starts, stops or meets the end of the text.
TEST(WordSplitter, TakesTheSameWordsFastAndCharacterByCharacter) {
  std::mt19937 random(5);
  const std::vector<std::string> parts = {"a", "B",    "9",  "z", "Z", "0", " ", ".", "[",
                                          "é", "\x01", "中", "@", "`", "{", "/", ":"};
  for (const bool lowercase : {true, false}) {
    const Normalizer normalizer({.strip_accents = std::nullopt, .lowercase = lowercase});
    WordSplitter splitter(normalizer, 100);
    for (int round = 0; round < 20000; ++round) {
      std::string text;
      std::string slow;  // a dropped character after every other one leaves no run to scan
      const std::size_t letters = round % 2 == 0 ? 6 : parts.size();
      for (int i = static_cast<int>(random() % 40); i > 0; --i) {
        const std::string& part = parts[random() % letters];
        text += part;
        slow += part + "\u200b";
      }
      WordCollector fast_words;
      WordCollector slow_words;
      const std::string exact(text.data(), text.size());
      splitter.split(exact, fast_words);
      splitter.split(slow, slow_words);
      ASSERT_EQ(fast_words.words, slow_words.words) << text;
    }
  }
}

}  // namespace
}  // namespace plenum::data

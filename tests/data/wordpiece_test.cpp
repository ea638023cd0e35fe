#include "plenum/data/tokenizer/wordpiece.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::data {
namespace {

Vocabulary vocabulary_of(std::vector<std::string> pieces) {
  std::vector<std::string> tokens(std::begin(kSpecialTokens), std::end(kSpecialTokens));
  tokens.insert(tokens.end(), pieces.begin(), pieces.end());
  return Vocabulary(std::move(tokens), "test");
}

std::vector<std::string> cut(const Vocabulary& vocabulary, const std::string& word,
                             const std::vector<TokenId>& excluded = {}) {
  const WordPiece wordpiece(vocabulary, excluded);
  std::vector<TokenId> pieces(word.size());
  pieces.resize(wordpiece.cut(word, pieces.data()));
  std::vector<std::string> texts;
  for (const TokenId id : pieces) texts.push_back(vocabulary.token(id));
  return texts;
}

using Pieces = std::vector<std::string>;

TEST(WordPiece, TakesTheLongestPieceFirst) {
  const Vocabulary vocabulary = vocabulary_of({"un", "una", "##aff", "##ffable", "##a", "##ff", "##able"});
  EXPECT_EQ(cut(vocabulary, "unaffable"), (Pieces{"una", "##ffable"}));
  EXPECT_EQ(cut(vocabulary, "unaffaffable"), (Pieces{"una", "##ff", "##aff", "##able"}));
}

TEST(WordPiece, GivesNothingWhenAnyPartIsMissing) {
  const Vocabulary vocabulary = vocabulary_of({"un", "una", "##ffable"});
  EXPECT_EQ(cut(vocabulary, "unaffablex"), Pieces{});
  EXPECT_EQ(cut(vocabulary, "affable"), Pieces{});
  // Greedy: "una" is taken although only "un" could be continued.
  EXPECT_EQ(cut(vocabulary_of({"un", "una", "##ab"}), "unab"), Pieces{});
}

TEST(WordPiece, KeepsBeginningAndContinuingPiecesApart) {
  const Vocabulary vocabulary = vocabulary_of({"a", "##b"});
  EXPECT_EQ(cut(vocabulary, "ab"), (Pieces{"a", "##b"}));
  EXPECT_EQ(cut(vocabulary, "ba"), Pieces{});
}

TEST(WordPiece, CutsAtCharactersOfSeveralBytes) {
  const Vocabulary vocabulary = vocabulary_of({"ж", "##ы", "é", "##\U0001f600"});
  EXPECT_EQ(cut(vocabulary, "жыы"), (Pieces{"ж", "##ы", "##ы"}));
  EXPECT_EQ(cut(vocabulary, "é\U0001f600"), (Pieces{"é", "##\U0001f600"}));
  EXPECT_EQ(cut(vocabulary, "ы"), Pieces{});
}

TEST(WordPiece, LeavesExcludedTokensOut) {
  const Vocabulary vocabulary = vocabulary_of({"foo", "f", "##o"});
  EXPECT_EQ(cut(vocabulary, "foo"), (Pieces{"foo"}));
  EXPECT_EQ(cut(vocabulary, "foo", {vocabulary.find("foo")}), (Pieces{"f", "##o", "##o"}));
}

TEST(WordPiece, FindsEveryTokenOfALargeVocabulary) {
  std::vector<std::string> pieces;
  for (int i = 0; i < 20000; ++i) {
    pieces.push_back(fmt::format("w{}", i * 7919));
    pieces.push_back(fmt::format("##w{}", i * 104729));
  }
  const Vocabulary vocabulary = vocabulary_of(pieces);
  const WordPiece wordpiece(vocabulary, {});
  std::vector<TokenId> found(64);
  for (int i = 0; i < 20000; ++i) {
    const std::string begin = fmt::format("w{}", i * 7919);
    ASSERT_EQ(wordpiece.cut(fmt::format("{}w{}", begin, i * 104729), found.data()), 2u);
    ASSERT_EQ(found[0], vocabulary.find(begin));
    ASSERT_EQ(found[1], vocabulary.find(fmt::format("##w{}", i * 104729)));
  }
}

TEST(Vocabulary, RefusesDoubleTokensAndMissingSpecialOnes) {
  EXPECT_THROW(vocabulary_of({"a", "a"}), base::UserError);
  EXPECT_THROW(Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]"}, "test"), base::UserError);
}

}  // namespace
}  // namespace plenum::data

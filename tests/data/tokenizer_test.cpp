#include "plenum/data/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include "tests/data/golden.h"

namespace plenum::data {
namespace {

Vocabulary small_vocabulary(std::vector<std::string> pieces) {
  std::vector<std::string> tokens(std::begin(kSpecialTokens), std::end(kSpecialTokens));
  tokens.insert(tokens.end(), pieces.begin(), pieces.end());
  return Vocabulary(std::move(tokens), "test");
}

std::vector<std::string> encode(const Tokenizer& tokenizer, std::string_view text,
                                AddedTokens added = AddedTokens::Match) {
  Encoder encoder(tokenizer, added);
  std::vector<TokenId> ids;
  encoder.encode(text, ids);
  std::vector<std::string> texts;
  for (const TokenId id : ids) texts.push_back(tokenizer.vocabulary().token(id));
  return texts;
}

using Pieces = std::vector<std::string>;

TEST(Encoder, GivesTheIdsOfHuggingFace) {
  const nlohmann::json golden = read_golden("tokenizer_cases.json");
  const auto texts = golden.at("texts").get<std::vector<std::string>>();
  ASSERT_GT(texts.size(), 150u);
  for (const nlohmann::json& setting : golden.at("settings")) {
    const Tokenizer tokenizer(Vocabulary(golden.at("vocabulary"), "golden"),
                              golden_rules(setting.at("rules")));
    Encoder encoder(tokenizer);
    std::vector<TokenId> ids;
    for (int round = 0; round < 2; ++round) {  // the second time from the cache
      for (std::size_t i = 0; i < texts.size(); ++i) {
        ids.clear();
        encoder.encode(texts[i], ids);
        ASSERT_EQ(ids, setting.at("ids")[i].get<std::vector<TokenId>>()) << texts[i] << setting.at("rules");
      }
    }
  }
}

TEST(Encoder, AppendsToWhatIsThere) {
  const Tokenizer tokenizer(small_vocabulary({"a"}), {});
  Encoder encoder(tokenizer);
  std::vector<TokenId> ids = {42};
  encoder.encode("a a", ids);
  encoder.encode("", ids);
  encoder.encode("A", ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{42, 5, 5, 5}));
}

TEST(Encoder, GivesTheSameIdsForOneLongTextAsForItsWords) {
  std::string text;
  std::vector<TokenId> expected;
  const Tokenizer tokenizer(small_vocabulary({"a", "b", "##a", "##b"}), {});
  Encoder encoder(tokenizer);
  for (unsigned i = 0; i < 60000; ++i) {
    std::string word;
    for (unsigned bits = i * 2654435761U % 1021 + 1; bits != 0; bits >>= 1) word += bits % 2 == 0 ? 'a' : 'b';
    text += word + " ";
    encoder.encode(word, expected);
  }
  std::vector<TokenId> ids;
  Encoder(tokenizer).encode(text, ids);
  EXPECT_EQ(ids, expected);
}

TEST(Encoder, MatchesSpecialTokensAsWrittenOnly) {
  const Tokenizer tokenizer(small_vocabulary({"foo", "[", "]", "sep", "mask"}), {});
  EXPECT_EQ(encode(tokenizer, "foo[SEP]foo [MASK]"), (Pieces{"foo", "[SEP]", "foo", "[MASK]"}));
  EXPECT_EQ(encode(tokenizer, "[sep] [[MASK]] [SEP"),
            (Pieces{"[", "sep", "]", "[", "[MASK]", "]", "[", "sep"}));
}

TEST(Encoder, TakesSpecialTokensAsTextWhenAsked) {
  const Tokenizer tokenizer(small_vocabulary({"foo", "[", "]", "sep"}), {});
  EXPECT_EQ(encode(tokenizer, "foo[SEP]", AddedTokens::PlainText), (Pieces{"foo", "[", "sep", "]"}));
}

TEST(Encoder, PrefersTheLongestAddedToken) {
  std::vector<AddedToken> added = {
      {.content = "<a>", .id = 5}, {.content = "<a>b", .id = 6}, {.content = "!x", .id = 7}};
  const Tokenizer tokenizer(small_vocabulary({"<a>", "<a>b", "!x", "c"}), {}, 100, std::move(added));
  EXPECT_EQ(encode(tokenizer, "c<a>b!xc<a>c"), (Pieces{"c", "<a>b", "!x", "c", "<a>", "c"}));
}

TEST(Encoder, KeepsAddedTokensOutsideTheModelFromBeingPieces) {
  std::vector<AddedToken> added = {{.content = "foo", .id = 5, .in_model = false}};
  const Tokenizer tokenizer(small_vocabulary({"foo", "f", "##oo"}), {}, 100, std::move(added));
  EXPECT_EQ(encode(tokenizer, "foo Foo"), (Pieces{"foo", "f", "##oo"}));
}

TEST(Encoder, MakesWordsOverTheLimitUnknown) {
  const Tokenizer tokenizer(small_vocabulary({"x", "##x"}), {}, 3);
  EXPECT_EQ(encode(tokenizer, "xxx xxxx x"), (Pieces{"x", "##x", "##x", "[UNK]", "x"}));
  EXPECT_EQ(encode(tokenizer, std::string(1 << 20, 'x')), (Pieces{"[UNK]"}));
}

TEST(Decode, JoinsPiecesAsHuggingFace) {
  const nlohmann::json golden = read_golden("tokenizer_cases.json");
  const Vocabulary vocabulary(golden.at("vocabulary"), "golden");
  const nlohmann::json& setting = golden.at("settings")[0];
  for (std::size_t i = 0; i < setting.at("ids").size(); ++i) {
    const auto ids = setting.at("ids")[i].get<std::vector<TokenId>>();
    EXPECT_EQ(decode(vocabulary, ids), setting.at("decoded")[i].get<std::string>());
  }
}

TEST(Tokenizer, CanBeMovedUnderAnEncoderMadeLater) {
  Tokenizer first(small_vocabulary({"a"}), {});
  const Tokenizer second = std::move(first);
  EXPECT_EQ(encode(second, "A"), (Pieces{"a"}));
}

}  // namespace
}  // namespace plenum::data

#include "plenum/data/tokenizer/tokenizer_files.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/io/file.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using testing::HasSubstr;

const std::string kSpecials = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";

Tokenizer small_tokenizer(const NormalizerRules& rules = {}) {
  return Tokenizer(parse_vocab_txt(kSpecials + "foo\n##bar\né\n\"\n", "vocab.txt"), rules);
}

class TokenizerDirectory : public testing::Test {
 protected:
  std::string inside(const char* name) const { return directory_ / name; }
  void put(const char* name, std::string_view text) const { io::write_file(inside(name), text); }
  Tokenizer load() const {
    return Tokenizer::load(directory_.path(), {.strip_accents = false, .lowercase = true});
  }

  test::TemporaryDirectory directory_;
};

TEST(ParseVocabTxt, NumbersLinesAndTrimsOnlyTheirEnd) {
  const Vocabulary vocabulary = parse_vocab_txt(kSpecials + "foo\r\nbar \n\nlast", "vocab.txt");
  EXPECT_EQ(vocabulary.find("foo"), 5);
  EXPECT_EQ(vocabulary.find("bar "), 6);
  EXPECT_EQ(vocabulary.find(""), 7);
  EXPECT_EQ(vocabulary.find("last"), 8);
  EXPECT_EQ(vocabulary.special().mask, 4);
}

TEST(ParseVocabTxt, ReadsBackWhatItPrints) {
  const Vocabulary vocabulary = parse_vocab_txt(kSpecials + "foo\r\r\nbar \n", "vocab.txt");
  EXPECT_EQ(parse_vocab_txt(print_vocab_txt(vocabulary), "vocab.txt").tokens(), vocabulary.tokens());
}

TEST(ParseVocabTxt, IgnoresEmptyLinesAtTheEnd) {
  EXPECT_EQ(parse_vocab_txt(kSpecials + "foo\n\n\n", "vocab.txt").size(), 6u);
}

TEST(ParseVocabTxt, RefusesBadFiles) {
  EXPECT_THAT(test::user_error_of([] { parse_vocab_txt(kSpecials + "a\nb\na\n", "v"); }),
              HasSubstr("'a' stands twice"));
  EXPECT_THAT(test::user_error_of([] { parse_vocab_txt("[PAD]\n[UNK]\n[CLS]\n[SEP]\nfoo\n", "v"); }),
              HasSubstr("[MASK]"));
  EXPECT_THAT(test::user_error_of([] { parse_vocab_txt("", "v"); }), HasSubstr("missing"));
  EXPECT_THAT(test::user_error_of([] { parse_vocab_txt("[PAD]\n\xFF\n", "v"); }), HasSubstr("UTF-8"));
}

TEST(TokenizerJson, ComesBackAsItWasWritten) {
  for (const NormalizerRules& rules :
       {NormalizerRules{}, NormalizerRules{.strip_accents = std::nullopt, .lowercase = false},
        NormalizerRules{
            .clean_text = false, .handle_chinese_chars = false, .strip_accents = true, .lowercase = false}}) {
    const std::string text = print_tokenizer_json(small_tokenizer(rules));
    const Tokenizer again = parse_tokenizer_json(text, "tokenizer.json");
    EXPECT_EQ(again.rules(), rules);
    EXPECT_EQ(again.vocabulary().tokens(), small_tokenizer().vocabulary().tokens());
    EXPECT_EQ(again.added_tokens().size(), 5u);
    EXPECT_EQ(print_tokenizer_json(again), text);
  }
}

TEST(TokenizerJson, HasTheFieldsInHuggingFacesOrder) {
  const Json root = Json::parse(print_tokenizer_json(small_tokenizer()));
  std::vector<std::string> keys;
  for (const auto& [key, value] : root.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"version", "truncation", "padding", "added_tokens", "normalizer",
                                            "pre_tokenizer", "post_processor", "decoder", "model"}));
  EXPECT_EQ(root["model"]["type"], "WordPiece");
  EXPECT_EQ(root["model"]["vocab"]["##bar"], 6);
  EXPECT_EQ(root["post_processor"]["pair"][4]["SpecialToken"]["type_id"], 1);
}

TEST(TokenizerJson, TakesAddedTokensBehindTheModel) {
  Json root = Json::parse(print_tokenizer_json(small_tokenizer()));
  root["added_tokens"].push_back({{"id", 9}, {"content", "[DOC]"}, {"normalized", false}, {"special", true}});
  const Tokenizer tokenizer = parse_tokenizer_json(root.dump(), "tokenizer.json");
  EXPECT_EQ(tokenizer.vocabulary().size(), 10u);
  std::vector<TokenId> ids;
  Encoder(tokenizer).encode("foo[DOC]foo", ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{5, 9, 5}));

  const Json again = Json::parse(print_tokenizer_json(tokenizer));
  EXPECT_EQ(again["added_tokens"].size(), 6u);
  EXPECT_EQ(again["added_tokens"][5]["special"], true);
  EXPECT_FALSE(again["model"]["vocab"].contains("[DOC]"));
}

TEST(TokenizerJson, NamesWhatIsNotSupported) {
  const Json good = Json::parse(print_tokenizer_json(small_tokenizer()));
  const auto error_with = [&good](const char* pointer, Json value) {
    Json changed = good;
    changed[Json::json_pointer(pointer)] = std::move(value);
    return test::user_error_of([&] { parse_tokenizer_json(changed.dump(), "t.json"); });
  };
  EXPECT_THAT(error_with("/model/type", "BPE"), HasSubstr("model type must be \"WordPiece\""));
  EXPECT_THAT(error_with("/normalizer", nullptr), HasSubstr("normalizer type must be \"BertNormalizer\""));
  EXPECT_THAT(error_with("/pre_tokenizer/type", "Whitespace"), HasSubstr("pre_tokenizer"));
  EXPECT_THAT(error_with("/model/continuing_subword_prefix", "@@"), HasSubstr("continuing_subword_prefix"));
  EXPECT_THAT(error_with("/model/max_input_chars_per_word", 0), HasSubstr("max_input_chars_per_word"));
  EXPECT_THAT(error_with("/model/vocab", Json::array()), HasSubstr("vocab"));
  EXPECT_THAT(error_with("/model/vocab/foo", 6), HasSubstr("id 6 stands for two tokens"));
  EXPECT_THAT(error_with("/model/vocab/foo", 20), HasSubstr("no token has id 5"));
  EXPECT_THAT(error_with("/model/vocab/foo", -1), HasSubstr("no valid id"));
  EXPECT_THAT(error_with("/added_tokens/0/lstrip", true), HasSubstr("lstrip is not supported"));
  EXPECT_THAT(error_with("/added_tokens/0/content", 3), HasSubstr("no content"));
  EXPECT_THAT(error_with("/normalizer/lowercase", "yes"), HasSubstr("lowercase must be true or false"));
  EXPECT_THAT(test::user_error_of([] { parse_tokenizer_json("{", "t.json"); }),
              HasSubstr("not a JSON object"));
  EXPECT_THAT(test::user_error_of([] { parse_tokenizer_json("[]", "t.json"); }),
              HasSubstr("not a JSON object"));
}

TEST_F(TokenizerDirectory, IsWrittenSoThatItLoadsTheSame) {
  const NormalizerRules rules{.strip_accents = false, .lowercase = false};
  write_tokenizer_files(small_tokenizer(rules), inside("new"), 512);
  const Tokenizer again = Tokenizer::load(inside("new"), {});
  EXPECT_EQ(again.rules(), rules);
  EXPECT_EQ(again.vocabulary().tokens(), small_tokenizer().vocabulary().tokens());
  const Json config = Json::parse(io::read_file(inside("new/tokenizer_config.json")));
  EXPECT_EQ(config["tokenizer_class"], "BertTokenizer");
  EXPECT_EQ(config["do_lower_case"], false);
  EXPECT_EQ(config["strip_accents"], false);
  EXPECT_EQ(config["model_max_length"], 512);
  EXPECT_EQ(config["mask_token"], "[MASK]");
}

TEST_F(TokenizerDirectory, TakesTheRulesOfItsConfiguration) {
  put("vocab.txt", print_vocab_txt(small_tokenizer().vocabulary()));
  EXPECT_EQ(load().rules(), (NormalizerRules{.strip_accents = false, .lowercase = true}));
  put("tokenizer_config.json", "{}");
  EXPECT_EQ(load().rules(), NormalizerRules{});
  put("tokenizer_config.json",
      R"({"do_lower_case": false, "strip_accents": true, "tokenize_chinese_chars": false})");
  EXPECT_EQ(load().rules(),
            (NormalizerRules{.handle_chinese_chars = false, .strip_accents = true, .lowercase = false}));
}

TEST_F(TokenizerDirectory, LetsTheConfigurationWinOverTokenizerJson) {
  put("tokenizer.json", print_tokenizer_json(small_tokenizer()));
  EXPECT_TRUE(load().rules().lowercase);
  put("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_FALSE(load().rules().lowercase);
}

TEST_F(TokenizerDirectory, SaysWhatIsMissing) {
  EXPECT_THAT(test::user_error_of([&] { load(); }), HasSubstr("neither tokenizer.json nor vocab.txt"));
  EXPECT_THAT(test::user_error_of([&] { Tokenizer::load(inside("nothing"), {}); }),
              HasSubstr("--local-dir nothing (pip install huggingface_hub), then --tokenizer nothing"));
  EXPECT_THAT(test::user_error_of([&] { Tokenizer::load(inside("none.txt"), {}); }),
              HasSubstr("cannot open"));
  put("vocab.txt", kSpecials);
  put("tokenizer_config.json", "not json");
  EXPECT_THAT(test::user_error_of([&] { load(); }), HasSubstr("tokenizer_config.json: not a JSON object"));
}

}  // namespace
}  // namespace plenum::data

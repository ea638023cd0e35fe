#include "plenum/model/hugging_face_config.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::model {
namespace {

using nlohmann::json;

describe::ModelConfig sample_config() {
  return {.vocabulary = 1000,
          .width = 48,
          .num_layers = 3,
          .num_heads = 4,
          .mlp_width = 100,
          .max_positions = 64,
          .num_segments = 3,
          .hidden_dropout = 0.25,
          .attention_dropout = 0,
          .initializer_range = 0.03,
          .layer_norm_epsilon = 1e-6,
          .pad_id = 7,
          .has_next_sentence = true};
}

/// A config.json of BERT with one key set.
std::string with(const char* key, const json& value) {
  json root = {{"model_type", "bert"}};
  root[key] = value;
  return root.dump();
}

TEST(HuggingFaceConfig, ReadsWhatItPrints) {
  describe::ModelConfig config = sample_config();
  EXPECT_EQ(parse_hugging_face_config(print_hugging_face_config(config), "config.json"), config);
  config.has_next_sentence = false;
  EXPECT_EQ(parse_hugging_face_config(print_hugging_face_config(config), "config.json"), config);
}

TEST(HuggingFaceConfig, PrintsWholeNumbersAndTheArchitecture) {
  describe::ModelConfig config = sample_config();
  json printed = json::parse(print_hugging_face_config(config));
  EXPECT_EQ(printed["architectures"], json::array({"BertForPreTraining"}));
  for (const char* key : {"vocab_size", "hidden_size", "num_hidden_layers", "pad_token_id"})
    EXPECT_TRUE(printed[key].is_number_integer()) << key;
  EXPECT_TRUE(printed["attention_probs_dropout_prob"].is_number_float()) << "0.0, not 0";
  config.has_next_sentence = false;
  printed = json::parse(print_hugging_face_config(config));
  EXPECT_EQ(printed["architectures"], json::array({"BertForMaskedLM"}));
}

TEST(HuggingFaceConfig, FillsInDefaultsAndPassesOverTheRest) {
  const describe::ModelConfig defaults;
  EXPECT_EQ(parse_hugging_face_config(with("torch_dtype", "float16"), "config.json"), defaults);
  EXPECT_EQ(parse_hugging_face_config(with("pad_token_id", nullptr), "config.json"), defaults);
  EXPECT_EQ(parse_hugging_face_config(with("position_embedding_type", "absolute"), "config.json"), defaults);
  EXPECT_EQ(parse_hugging_face_config(with("id2label", json::object()), "config.json"), defaults);
  EXPECT_EQ(parse_hugging_face_config(with("architectures", json::array({"BertModel"})), "config.json"),
            defaults)
      << "of no task";
}

TEST(HuggingFaceConfig, RefusesByNameWhatIsNotSupported) {
  const auto refuse = [](const char* key, const json& value, const std::string& reason) {
    const std::string message =
        test::user_error_of([&] { parse_hugging_face_config(with(key, value), "x.json"); });
    EXPECT_THAT(message, testing::StartsWith("x.json: "));
    EXPECT_THAT(message, testing::HasSubstr(reason));
  };
  refuse("model_type", "roberta", "model_type \"roberta\" is not supported, only \"bert\" is");
  refuse("hidden_act", "gelu_new", "hidden_act \"gelu_new\" is not supported, only \"gelu\" is");
  refuse("position_embedding_type", "relative_key", "only \"absolute\" is");
  refuse("is_decoder", true, "is_decoder true");
  refuse("add_cross_attention", true, "add_cross_attention true");
  refuse("tie_word_embeddings", false, "tie_word_embeddings false is not supported, only true is");
  refuse("hidden_size", 768.0, "hidden_size must be a whole number");
  refuse("hidden_size", -1, "hidden_size must be a whole number");
  refuse("hidden_size", "768", "hidden_size must be a whole number");
  refuse("hidden_size", 770, "width 770 is not a multiple of 12 heads");
  refuse("layer_norm_eps", json::array(), "layer_norm_eps must be a number");
  refuse("hidden_dropout_prob", 1, "hidden dropout must be 0 or in [1/512, 1)");
  refuse("num_hidden_layers", 0, "the number of layers must be from 1");
}

TEST(HuggingFaceConfig, RefusesWhatIsNoConfiguration) {
  for (const char* text : {"", "[]", "{", "{\"model_type\": NaN}", "null"}) {
    test::expect_user_error([&] { parse_hugging_face_config(text, "x.json"); },
                            "x.json: this is not a JSON object");
  }
  test::expect_user_error([] { parse_hugging_face_config("{}", "x.json"); },
                          "the key \"model_type\" is missing");
  const test::TemporaryDirectory directory;
  test::expect_user_error([&] { read_hugging_face_config(directory.path()); }, "config.json");
}

}  // namespace
}  // namespace plenum::model

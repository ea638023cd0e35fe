#include "plenum/model/hugging_face_config.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/io/file.h"
#include "plenum/model/hugging_face_task.h"

namespace plenum::model {
namespace {

using nlohmann::json;

/// A config.json, and errors that name it.
class ConfigReader {
 public:
  ConfigReader(std::string_view text, const std::string& source) : source_(source) {
    root_ = json::parse(text, nullptr, /*allow_exceptions=*/false);
    base::require(root_.is_object(), "{}: this is not a JSON object", source_);
  }

  /// Of a key that is missing or null, `preset`.
  std::int64_t integer(const char* key, std::int64_t preset) const {
    const json& found = value(key);
    if (found.is_null()) return preset;
    base::require(found.is_number_integer() && found >= 0 && found <= kMaxInteger,
                  "{}: {} must be a whole number from 0 to {}: {}", source_, key, kMaxInteger, found.dump());
    return found.get<std::int64_t>();
  }

  double number(const char* key, double preset) const {
    const json& found = value(key);
    if (found.is_null()) return preset;
    base::require(found.is_number(), "{}: {} must be a number: {}", source_, key, found.dump());
    return found.get<double>();
  }

  /// Refuses every value of `key` but `supported`, which a missing key also stands for.
  void require_only(const char* key, const json& supported) const {
    const json& found = value(key);
    base::require(found.is_null() || found == supported, "{}: {} {} is not supported, only {} is", source_,
                  key, found.dump(), supported.dump());
  }

  void require_key(const char* key) const {
    base::require(!value(key).is_null(), "{}: the key \"{}\" is missing", source_, key);
  }

  bool has_architecture(const char* name) const {
    const json& list = value("architectures");
    return list.is_array() && std::find(list.begin(), list.end(), json(name)) != list.end();
  }

  std::optional<describe::Task> task() const { return read_hugging_face_task(root_, source_); }

 private:
  static constexpr std::int64_t kMaxInteger = std::int64_t{1} << 40;

  const json& value(const char* key) const {
    static const json null;
    const auto found = root_.find(key);
    return found == root_.end() ? null : *found;
  }

  const std::string& source_;
  json root_;
};

void require_supported(const ConfigReader& reader) {
  reader.require_key("model_type");
  reader.require_only("model_type", "bert");
  reader.require_only("hidden_act", "gelu");
  reader.require_only("position_embedding_type", "absolute");
  reader.require_only("is_decoder", false);
  reader.require_only("add_cross_attention", false);
  reader.require_only("tie_word_embeddings", true);
}

}  // namespace

describe::ModelConfig parse_hugging_face_config(std::string_view text, const std::string& source) {
  const ConfigReader reader(text, source);
  require_supported(reader);
  const describe::ModelConfig preset;  // BertConfig's defaults
  const describe::ModelConfig config = {
      .vocabulary = reader.integer("vocab_size", preset.vocabulary),
      .width = reader.integer("hidden_size", preset.width),
      .num_layers = reader.integer("num_hidden_layers", preset.num_layers),
      .num_heads = reader.integer("num_attention_heads", preset.num_heads),
      .mlp_width = reader.integer("intermediate_size", preset.mlp_width),
      .max_positions = reader.integer("max_position_embeddings", preset.max_positions),
      .num_segments = reader.integer("type_vocab_size", preset.num_segments),
      .hidden_dropout = reader.number("hidden_dropout_prob", preset.hidden_dropout),
      .attention_dropout = reader.number("attention_probs_dropout_prob", preset.attention_dropout),
      .initializer_range = reader.number("initializer_range", preset.initializer_range),
      .layer_norm_epsilon = reader.number("layer_norm_eps", preset.layer_norm_epsilon),
      .pad_id = reader.integer("pad_token_id", preset.pad_id),
      .has_next_sentence = reader.has_architecture("BertForPreTraining") ||
                           reader.has_architecture("BertForNextSentencePrediction"),
      .task = reader.task(),
  };
  try {
    describe::require_valid(config);
  } catch (const base::UserError& error) {
    base::fail("{}: {}", source, error.what());
  }
  return config;
}

describe::ModelConfig read_hugging_face_config(const std::string& directory) {
  const std::string path = directory + "/config.json";
  return parse_hugging_face_config(io::read_file(path), path);
}

std::string print_hugging_face_config(const describe::ModelConfig& config) {
  json root = {
      {"add_cross_attention", false},
      {"architectures", json::array({config.has_next_sentence ? "BertForPreTraining" : "BertForMaskedLM"})},
      {"attention_probs_dropout_prob", config.attention_dropout},
      {"bos_token_id", nullptr},
      {"classifier_dropout", nullptr},
      {"dtype", "float32"},
      {"eos_token_id", nullptr},
      {"hidden_act", "gelu"},
      {"hidden_dropout_prob", config.hidden_dropout},
      {"hidden_size", config.width},
      {"initializer_range", config.initializer_range},
      {"intermediate_size", config.mlp_width},
      {"is_decoder", false},
      {"layer_norm_eps", config.layer_norm_epsilon},
      {"max_position_embeddings", config.max_positions},
      {"model_type", "bert"},
      {"num_attention_heads", config.num_heads},
      {"num_hidden_layers", config.num_layers},
      {"pad_token_id", config.pad_id},
      {"tie_word_embeddings", true},
      {"type_vocab_size", config.num_segments},
      {"use_cache", true},
      {"vocab_size", config.vocabulary},
  };
  if (config.task) set_hugging_face_task(*config.task, root);
  return root.dump(2) + "\n";
}

}  // namespace plenum::model

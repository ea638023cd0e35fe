#include "plenum/describe/parameter_table.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "plenum/base/check.h"

namespace plenum::describe {
namespace {

// 256 bytes where elements have 2: a GPU reads lines of 128, and a product whose weights begin within one
// takes longer.
constexpr std::int64_t kAlignedElements = 128;
// Their bytes can still be counted. Every size alone is bounded by require_valid(), their product is not.
constexpr std::int64_t kMostElements = std::int64_t{1} << 60;

}  // namespace

ParameterTable::ParameterTable(const ModelConfig& config) {
  require_valid(config);
  const auto num_layers = static_cast<std::size_t>(config.num_layers);
  layers_.resize(num_layers);
  layer_begin_.resize(num_layers);
  current_layer_ = base::LayerId::at(num_layers - 1);
  add_heads(config);
  for (std::size_t layer = num_layers; layer-- > 0;) {
    current_layer_ = base::LayerId::at(layer);
    layer_begin_[layer] = layer + 1 == num_layers ? 0 : num_elements_;
    add_layer(config, layer);
  }
  add_embeddings(config);
}

std::size_t ParameterTable::add(Parameter parameter) {
  base::require(parameter.num_elements() <= kMostElements - num_elements_,
                "the model has too many parameters, make it narrower or shallower: more than {}",
                kMostElements);
  parameter.layer = current_layer_;
  parameter.begin = num_elements_;
  num_elements_ = parameter.end();
  if (!is_contiguous_)
    num_elements_ = (num_elements_ + kAlignedElements - 1) / kAlignedElements * kAlignedElements;
  parameters_.push_back(std::move(parameter));
  return parameters_.size() - 1;
}

std::size_t ParameterTable::add_weight(std::string name, tensor::Shape shape,
                                       std::optional<std::size_t> split_dim) {
  return add({.name = std::move(name),
              .shape = shape,
              .initialisation = Initialisation::Normal,
              .is_decayed = true,
              .split_dim = split_dim,
              .layer = {}});
}

std::size_t ParameterTable::add_bias(std::string name, std::int64_t size,
                                     std::optional<std::size_t> split_dim) {
  return add({.name = std::move(name),
              .shape = {size},
              .initialisation = Initialisation::Zero,
              .is_decayed = false,
              .split_dim = split_dim,
              .layer = {}});
}

void ParameterTable::add_heads(const ModelConfig& config) {
  const std::int64_t width = config.width;
  const auto add_norm_weight = [&](std::string name) {
    const std::size_t index = add_bias(std::move(name), width);
    parameters_[index].initialisation = Initialisation::One;
    return index;
  };
  if (config.has_next_sentence) {
    next_sentence_weight_ = add_weight("cls.seq_relationship.weight", {2, width});
    next_sentence_bias_ = add_bias("cls.seq_relationship.bias", 2);
    pooler_weight_ = add_weight("bert.pooler.dense.weight", {width, width});
    pooler_bias_ = add_bias("bert.pooler.dense.bias", width);
  }
  decoder_bias_ = add_bias("cls.predictions.bias", config.vocabulary, 0);
  transform_norm_weight_ = add_norm_weight("cls.predictions.transform.LayerNorm.weight");
  transform_norm_bias_ = add_bias("cls.predictions.transform.LayerNorm.bias", width);
  transform_weight_ = add_weight("cls.predictions.transform.dense.weight", {width, width});
  transform_bias_ = add_bias("cls.predictions.transform.dense.bias", width);
}

void ParameterTable::add_layer(const ModelConfig& config, std::size_t layer) {
  const std::int64_t width = config.width;
  const std::int64_t mlp_width = config.mlp_width;
  const std::string prefix = fmt::format("bert.encoder.layer.{}.", layer);
  const auto name = [&](const std::string& part) { return prefix + part; };
  const auto add_norm = [&](const std::string& part, std::size_t& weight, std::size_t& bias) {
    weight = add_bias(name(part + ".weight"), width);
    parameters_[weight].initialisation = Initialisation::One;
    bias = add_bias(name(part + ".bias"), width);
  };
  LayerParameters& at = layers_[layer];
  add_norm("output.LayerNorm", at.output_norm_weight, at.output_norm_bias);
  at.output_weight = add_weight(name("output.dense.weight"), {width, mlp_width}, 1);
  at.output_bias = add_bias(name("output.dense.bias"), width);
  at.intermediate_weight = add_weight(name("intermediate.dense.weight"), {mlp_width, width}, 0);
  at.intermediate_bias = add_bias(name("intermediate.dense.bias"), mlp_width, 0);
  add_norm("attention.output.LayerNorm", at.attention_norm_weight, at.attention_norm_bias);
  at.attention_output_weight = add_weight(name("attention.output.dense.weight"), {width, width}, 1);
  at.attention_output_bias = add_bias(name("attention.output.dense.bias"), width);
  is_contiguous_ = true;
  at.query_weight = add_weight(name("attention.self.query.weight"), {width, width}, 0);
  at.key_weight = add_weight(name("attention.self.key.weight"), {width, width}, 0);
  is_contiguous_ = false;
  at.value_weight = add_weight(name("attention.self.value.weight"), {width, width}, 0);
  is_contiguous_ = true;
  at.query_bias = add_bias(name("attention.self.query.bias"), width, 0);
  at.key_bias = add_bias(name("attention.self.key.bias"), width, 0);
  is_contiguous_ = false;
  at.value_bias = add_bias(name("attention.self.value.bias"), width, 0);
}

void ParameterTable::add_embeddings(const ModelConfig& config) {
  const std::int64_t width = config.width;
  embedding_norm_weight_ = add_bias("bert.embeddings.LayerNorm.weight", width);
  parameters_.back().initialisation = Initialisation::One;
  embedding_norm_bias_ = add_bias("bert.embeddings.LayerNorm.bias", width);
  segment_embedding_ =
      add_weight("bert.embeddings.token_type_embeddings.weight", {config.num_segments, width});
  position_embedding_ =
      add_weight("bert.embeddings.position_embeddings.weight", {config.max_positions, width});
  word_embedding_ = add_weight("bert.embeddings.word_embeddings.weight", {config.vocabulary, width}, 0);
  parameters_.back().initialisation = Initialisation::NormalWithoutPadding;
}

std::size_t ParameterTable::index_of(std::string_view name) const {
  const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const Parameter& parameter) { return parameter.name == name; });
  base::check(found != parameters_.end(), "the model has no parameter {}", name);
  return static_cast<std::size_t>(found - parameters_.begin());
}

std::int64_t ParameterTable::num_parameters() const {
  return std::accumulate(
      parameters_.begin(), parameters_.end(), std::int64_t{0},
      [](std::int64_t sum, const Parameter& parameter) { return sum + parameter.num_elements(); });
}

ParameterTable::ElementRange ParameterTable::elements_of_layers(base::LayerId first,
                                                                base::LayerId end) const {
  base::check(first < end && end.index() <= layers_.size(), "the model has no layers [{}, {})", first.value,
              end.value);
  return {layer_begin_[end.index() - 1],
          first.index() == 0 ? num_elements_ : layer_begin_[first.index() - 1]};
}

}  // namespace plenum::describe

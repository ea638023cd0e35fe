#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/base/ids.h"
#include "plenum/describe/model_config.h"
#include "plenum/tensor/shape.h"

namespace plenum::describe {

/// How a parameter begins.
enum class Initialisation : std::uint8_t {
  Normal,                ///< of deviation initializer_range
  NormalWithoutPadding,  ///< the same, with the row of the padding id zero
  Zero,
  One,
};

/// A logical tensor of the model, by its Hugging Face name, and its place in the flat buffers.
struct Parameter {
  std::string name;
  tensor::Shape shape;
  Initialisation initialisation = Initialisation::Normal;
  bool is_decayed = false;               ///< weights and embeddings; not biases and layer norms
  std::optional<std::size_t> split_dim;  ///< the dimension that tensor parallelism divides; none: replicated
  base::LayerId
      layer;  ///< whose backward completes its gradient: heads with the last, embeddings with the first
  std::int64_t begin = 0;  ///< first element in the flat buffers

  std::int64_t num_elements() const { return shape.num_elements(); }
  std::int64_t end() const { return begin + num_elements(); }
};

/// Where the parameters of one encoder layer stand in the table.
struct LayerParameters {
  std::size_t query_weight, key_weight, value_weight;  ///< lie together: as one they are [3D, D]
  std::size_t query_bias, key_bias, value_bias;        ///< lie together: [3D]
  std::size_t attention_output_weight, attention_output_bias;
  std::size_t attention_norm_weight, attention_norm_bias;
  std::size_t intermediate_weight, intermediate_bias;
  std::size_t output_weight, output_bias;
  std::size_t output_norm_weight, output_norm_bias;
};

/// All parameters of a model, in the order in which backward completes their gradients: heads, the last layer
/// to the first, embeddings. The flat buffers hold them in this order, each tensor from a multiple of 128
/// elements on but for keys and values, which follow queries without a gap. So the gradients of a range of
/// layers are one range.
class ParameterTable {
 public:
  /// Throws UserError for a configuration that is not valid or has too many parameters to count.
  explicit ParameterTable(const ModelConfig& config);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const Parameter& operator[](std::size_t index) const { return parameters_[index]; }
  /// Throws InternalError if there is none.
  std::size_t index_of(std::string_view name) const;

  /// Of the model, as its authors count them.
  std::int64_t num_parameters() const;
  /// Of the flat buffers, with the gaps that align tensors.
  std::int64_t num_elements() const { return num_elements_; }

  const LayerParameters& layer(std::size_t layer) const { return layers_[layer]; }
  std::size_t word_embedding() const { return word_embedding_; }
  std::size_t position_embedding() const { return position_embedding_; }
  std::size_t segment_embedding() const { return segment_embedding_; }
  std::size_t embedding_norm_weight() const { return embedding_norm_weight_; }
  std::size_t embedding_norm_bias() const { return embedding_norm_bias_; }
  std::size_t transform_weight() const { return transform_weight_; }
  std::size_t transform_bias() const { return transform_bias_; }
  std::size_t transform_norm_weight() const { return transform_norm_weight_; }
  std::size_t transform_norm_bias() const { return transform_norm_bias_; }
  std::size_t decoder_bias() const { return decoder_bias_; }
  /// Only where the model has a next-sentence head.
  std::size_t pooler_weight() const { return pooler_weight_; }
  std::size_t pooler_bias() const { return pooler_bias_; }
  std::size_t next_sentence_weight() const { return next_sentence_weight_; }
  std::size_t next_sentence_bias() const { return next_sentence_bias_; }

  /// The elements of the flat buffers whose gradients the backward of layers [first, end) completes.
  struct ElementRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  ElementRange elements_of_layers(base::LayerId first, base::LayerId end) const;

 private:
  std::size_t add(Parameter parameter);
  std::size_t add_weight(std::string name, tensor::Shape shape, std::optional<std::size_t> split_dim = {});
  std::size_t add_bias(std::string name, std::int64_t size, std::optional<std::size_t> split_dim = {});
  void add_heads(const ModelConfig& config);
  void add_layer(const ModelConfig& config, std::size_t layer);
  void add_embeddings(const ModelConfig& config);

  base::LayerId current_layer_;
  bool is_contiguous_ = false;  ///< the next parameter follows the last without a gap
  std::int64_t num_elements_ = 0;
  std::vector<Parameter> parameters_;
  std::vector<LayerParameters> layers_;
  std::vector<std::int64_t> layer_begin_;  ///< of each layer's range, by layer
  std::size_t word_embedding_ = 0, position_embedding_ = 0, segment_embedding_ = 0;
  std::size_t embedding_norm_weight_ = 0, embedding_norm_bias_ = 0;
  std::size_t transform_weight_ = 0, transform_bias_ = 0, transform_norm_weight_ = 0,
              transform_norm_bias_ = 0;
  std::size_t decoder_bias_ = 0;
  std::size_t pooler_weight_ = 0, pooler_bias_ = 0, next_sentence_weight_ = 0, next_sentence_bias_ = 0;
};

}  // namespace plenum::describe

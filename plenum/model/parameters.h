#pragma once

#include <vector>

#include "plenum/describe/parameter_table.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::model {

// The parameters of a model's parts as views into a flat buffer: weights, which are read, or their gradients,
// which a step's first micro-batch overwrites and the others add to. D width, F feed-forward width, V words,
// P positions, G segments.

template <typename View>
struct EmbeddingParameters {
  View word_VD, position_PD, segment_GD;
  View norm_weight_D, norm_bias_D;
};

template <typename View>
struct EncoderLayerParameters {
  View qkv_weight_3DD, qkv_bias_3D;  ///< queries, keys and values as one
  View attention_output_weight_DD, attention_output_bias_D;
  View attention_norm_weight_D, attention_norm_bias_D;
  View intermediate_weight_FD, intermediate_bias_F;
  View output_weight_DF, output_bias_D;
  View output_norm_weight_D, output_norm_bias_D;
};

/// D width, E words or other outputs.
template <typename View>
struct HeadParameters {
  View transform_weight, transform_bias;  ///< [D, D], [D]; left out where the head has no transform
  View norm_weight, norm_bias;            ///< [D]; left out where the head has no norm
  View output_weight, output_bias;        ///< [E, D], the embedding's words where they are tied; [E]
};

template <typename View>
struct BertParameters {
  EmbeddingParameters<View> embedding;
  std::vector<EncoderLayerParameters<View>> layers;
  std::vector<HeadParameters<View>> heads;  ///< by objective
};

using EmbeddingWeights = EmbeddingParameters<tensor::ConstTensorView>;
using EmbeddingGradients = EmbeddingParameters<tensor::TensorView>;
using EncoderLayerWeights = EncoderLayerParameters<tensor::ConstTensorView>;
using EncoderLayerGradients = EncoderLayerParameters<tensor::TensorView>;
using HeadWeights = HeadParameters<tensor::ConstTensorView>;
using HeadGradients = HeadParameters<tensor::TensorView>;
using BertWeights = BertParameters<tensor::ConstTensorView>;

/// The gradients of a part of the model. Tensors that lie together are one.
struct PartGradients {
  std::vector<tensor::TensorView> overwritten;  ///< by the part's first backward of a step: weights of maps
  std::vector<tensor::TensorView> added_to;
};

struct BertGradients : BertParameters<tensor::TensorView> {
  std::vector<PartGradients> of_heads, of_layers;
  PartGradients of_embedding;
};

/// All weights in flat buffers of table.num_elements() elements: as the optimizer keeps them, in Float32, and
/// as products read them. Where both have one type they are the same.
struct FlatWeights {
  tensor::ConstTensorView exact_N;
  tensor::ConstTensorView compute_N;
};

/// Views into flat buffers; of layers and parts that the table does not hold they are left out. Weights of
/// layer norms are the exact ones. A word table that is tied apart (ParameterTable::is_tied_apart) is among
/// no part's gradients: Pass::has_word_gradient.
BertWeights weights_of(const describe::ParameterTable& table, const FlatWeights& flat);
BertGradients gradients_of(const describe::ParameterTable& table, tensor::TensorView flat_N);

/// A range of the table's elements that lies in a buffer of its own, from its first element on.
struct FlatPart {
  describe::ParameterTable::ElementRange elements;
  tensor::TensorView values;
};
/// The same where flat buffers lie in parts that do not cut a tensor, nor queries, keys and values. Of
/// weights those of norms are among `exact`, all others among `compute`.
BertWeights weights_of(const describe::ParameterTable& table, const std::vector<FlatPart>& exact,
                       const std::vector<FlatPart>& compute);
BertGradients gradients_of(const describe::ParameterTable& table, const std::vector<FlatPart>& parts);

}  // namespace plenum::model

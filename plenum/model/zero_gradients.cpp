#include "plenum/model/zero_gradients.h"

#include <vector>

#include "plenum/kernels/zero_all.h"

namespace plenum::model {
namespace {

using tensor::TensorView;

/// The gradients of a part of the model.
struct PartGradients {
  std::vector<TensorView> overwritten;  ///< by the part's backward: weights of linear maps
  std::vector<TensorView> added_to;
};

PartGradients part_of(const EncoderLayerGradients& layer) {
  return {.overwritten = {layer.qkv_weight_3DD, layer.attention_output_weight_DD,
                          layer.intermediate_weight_FD, layer.output_weight_DF},
          .added_to = {layer.qkv_bias_3D, layer.attention_output_bias_D, layer.attention_norm_weight_D,
                       layer.attention_norm_bias_D, layer.intermediate_bias_F, layer.output_bias_D,
                       layer.output_norm_weight_D, layer.output_norm_bias_D}};
}

PartGradients part_of(const MaskedLanguageGradients& head) {
  return {.overwritten = {head.transform_weight_DD, head.word_VD},
          .added_to = {head.transform_bias_D, head.norm_weight_D, head.norm_bias_D, head.decoder_bias_V}};
}

PartGradients part_of(const NextSentenceGradients& head) {
  return {.overwritten = {head.pooler_weight_DD, head.weight_2D},
          .added_to = {head.pooler_bias_D, head.bias_2}};
}

/// The words' gradient is begun by the masked-language head, whose backward comes before.
PartGradients part_of(const EmbeddingGradients& embedding) {
  return {.overwritten = {},
          .added_to = {embedding.position_PD, embedding.segment_GD, embedding.norm_weight_D,
                       embedding.norm_bias_D}};
}

}  // namespace

void zero_gradients(const Pass& pass, const BertGradients& gradients, base::LayerId first,
                    base::LayerId end) {
  std::vector<TensorView> zeros;
  const auto add = [&](const PartGradients& part, bool is_computed) {
    zeros.insert(zeros.end(), part.added_to.begin(), part.added_to.end());
    if (!is_computed) zeros.insert(zeros.end(), part.overwritten.begin(), part.overwritten.end());
  };
  if (end.index() == gradients.layers.size()) {
    add(part_of(gradients.masked_language), pass.num_masked() > 0);
    if (pass.config.has_next_sentence) add(part_of(gradients.next_sentence), pass.num_labelled() > 0);
  }
  for (std::size_t layer = first.index(); layer < end.index(); ++layer) {
    add(part_of(gradients.layers[layer]), pass.num_read() > 0);
  }
  if (first.index() == 0) add(part_of(gradients.embedding), pass.num_read() > 0);
  kernels::zero_all(pass.stream, zeros);
}

}  // namespace plenum::model

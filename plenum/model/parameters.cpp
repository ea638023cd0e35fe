#include "plenum/model/parameters.h"

#include "plenum/base/check.h"

namespace plenum::model {
namespace {

using describe::ModelConfig;
using describe::ParameterTable;
using tensor::Shape;

template <typename View>
class Views {
 public:
  Views(const ModelConfig& config, const ParameterTable& table, View exact_N, View compute_N)
      : config_(config), table_(table), exact_N_(exact_N), compute_N_(compute_N) {
    for (const View& flat_N : {exact_N, compute_N}) {
      base::check(flat_N.num_elements() == table.num_elements(),
                  "a flat buffer must hold every parameter: {} of {} elements", flat_N.num_elements(),
                  table.num_elements());
    }
  }

  BertParameters<View> all() const {
    BertParameters<View> parameters{
        .embedding = {.word_VD = of(table_.word_embedding()),
                      .position_PD = of(table_.position_embedding()),
                      .segment_GD = of(table_.segment_embedding()),
                      .norm_weight_D = exact(table_.embedding_norm_weight()),
                      .norm_bias_D = exact(table_.embedding_norm_bias())},
        .layers = {},
        .masked_language = {.transform_weight_DD = of(table_.transform_weight()),
                            .transform_bias_D = of(table_.transform_bias()),
                            .norm_weight_D = exact(table_.transform_norm_weight()),
                            .norm_bias_D = exact(table_.transform_norm_bias()),
                            .word_VD = of(table_.word_embedding()),
                            .decoder_bias_V = of(table_.decoder_bias())},
        .next_sentence = {}};
    for (std::int64_t layer = 0; layer < config_.num_layers; ++layer) {
      parameters.layers.push_back(of_layer(table_.layer(static_cast<std::size_t>(layer))));
    }
    if (config_.has_next_sentence) {
      parameters.next_sentence = {.pooler_weight_DD = of(table_.pooler_weight()),
                                  .pooler_bias_D = of(table_.pooler_bias()),
                                  .weight_2D = of(table_.next_sentence_weight()),
                                  .bias_2 = of(table_.next_sentence_bias())};
    }
    return parameters;
  }

 private:
  EncoderLayerParameters<View> of_layer(const describe::LayerParameters& at) const {
    const std::int64_t width = config_.width;
    return {.qkv_weight_3DD = of(at.query_weight, {3 * width, width}),
            .qkv_bias_3D = of(at.query_bias, {3 * width}),
            .attention_output_weight_DD = of(at.attention_output_weight),
            .attention_output_bias_D = of(at.attention_output_bias),
            .attention_norm_weight_D = exact(at.attention_norm_weight),
            .attention_norm_bias_D = exact(at.attention_norm_bias),
            .intermediate_weight_FD = of(at.intermediate_weight),
            .intermediate_bias_F = of(at.intermediate_bias),
            .output_weight_DF = of(at.output_weight),
            .output_bias_D = of(at.output_bias),
            .output_norm_weight_D = exact(at.output_norm_weight),
            .output_norm_bias_D = exact(at.output_norm_bias)};
  }

  View exact(std::size_t index) const { return part_of(exact_N_, index, table_[index].shape); }
  View of(std::size_t index) const { return of(index, table_[index].shape); }
  View of(std::size_t index, Shape shape) const { return part_of(compute_N_, index, shape); }
  View part_of(const View& flat_N, std::size_t index, Shape shape) const {
    const std::size_t offset =
        static_cast<std::size_t>(table_[index].begin) * tensor::size_of(flat_N.dtype());
    using Byte = typename View::template Pointer<std::byte>;
    return View(static_cast<Byte>(flat_N.raw()) + offset, flat_N.dtype(), shape);
  }

  const ModelConfig& config_;
  const ParameterTable& table_;
  View exact_N_;
  View compute_N_;
};

}  // namespace

BertWeights weights_of(const ModelConfig& config, const ParameterTable& table, const FlatWeights& flat) {
  return Views<tensor::ConstTensorView>(config, table, flat.exact_N, flat.compute_N).all();
}

BertGradients gradients_of(const ModelConfig& config, const ParameterTable& table,
                           tensor::TensorView flat_N) {
  return Views<tensor::TensorView>(config, table, flat_N, flat_N).all();
}

}  // namespace plenum::model

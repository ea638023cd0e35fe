#include "plenum/model/map_views.h"

#include "plenum/base/check.h"
#include "plenum/model/encoder_layer.h"

namespace plenum::model {
namespace {

using describe::LayerRows;
using tensor::TensorView;

enum Map : std::size_t { kQueries, kKeys, kValues, kAttentionOutput, kMlpIn, kMlpOut, kNumMaps };

void check_map(std::size_t map) {
  base::check(map < kNumMaps, "a layer has {} maps, no map {}", static_cast<std::size_t>(kNumMaps), map);
}

}  // namespace

bool is_behind_attention(std::size_t map) {
  return map > kValues;
}

MapColumns map_input(const Pass& pass, std::size_t layer, std::size_t map, const Activations& kept,
                     const Transients& transients, const LayerRows& rows) {
  check_map(map);
  const LayerActivations of_layer = kept.layers[layer].of(rows);
  switch (map) {
    case kAttentionOutput:
      return {pass.is_last(layer) ? of_layer.read_context_RD : of_layer.context_TD};
    case kMlpIn:
      return {of_layer.y1_RD};
    case kMlpOut:
      return {mlp_hidden(pass, of_layer, transients.of(rows, {}))};
    default:
      return {kept.x_TD[layer].first_rows(rows.attended)};
  }
}

MapColumns map_error(std::size_t layer, std::size_t map, const Activations& kept, const LayerRows& rows) {
  check_map(map);
  const LayerErrors errors = kept.errors[layer].of(rows);
  switch (map) {
    case kAttentionOutput:
      return {errors.dattention_RD};
    case kMlpIn:
      return {errors.du_RF};
    case kMlpOut:
      return {errors.dmlp_RD};
    default: {
      const std::int64_t width = errors.dqkv_T3D.size(1) / 3;
      return {errors.dqkv_T3D, static_cast<std::int64_t>(map) * width};
    }
  }
}

TensorView map_weight_gradient(const EncoderLayerGradients& gradients, std::size_t map) {
  check_map(map);
  switch (map) {
    case kAttentionOutput:
      return gradients.attention_output_weight_DD;
    case kMlpIn:
      return gradients.intermediate_weight_FD;
    case kMlpOut:
      return gradients.output_weight_DF;
    default: {
      const std::int64_t height = gradients.qkv_weight_3DD.size(0) / 3;
      return gradients.qkv_weight_3DD.rows(static_cast<std::int64_t>(map) * height, height);
    }
  }
}

}  // namespace plenum::model

#include "plenum/model/encoder_layer.h"

#include "plenum/kernels/activation.h"
#include "plenum/kernels/attention.h"
#include "plenum/kernels/column_sums.h"
#include "plenum/kernels/layer_norm.h"
#include "plenum/kernels/linear.h"
#include "plenum/kernels/mlp_gelu.h"
#include "plenum/model/rank_sums.h"
#include "plenum/model/read_rows.h"
#include "plenum/tensor/copy.h"

namespace plenum::model {
namespace {

// T rows, R of them behind attention, D width, H heads of width K, F feed-forward width. docs/math/bert.md.
//
// Forward:  qkv = x Wqkv + b;  c = attention(qkv);  z1 = x + dropout(c Wo + b);      y1 = norm(z1)
//           u = y1 W1 + b;          h = gelu(u);    z2 = y1 + dropout(h W2 + b);       y = norm(z2)
// Kept:     x, qkv, c, log-sum-exp, z1, y1, what the GELU's backward wants to know of u, z2, means and
//           inverse deviations; h and dropout's bits where they are dear. What a schedule recomputes is kept
//           from there on, in memory that all layers share.
// Backward: from the last line to the first. A norm's dz is the gradient of its residual, onto which the
//           sublayer's input gradient is added; so one buffer, dx, holds dy, dz2, dy1, dz1 and dx in turn.
//           The gradient of a map's weights needs its input and the gradient of its output alone. It is made
//           when that is there, or later of what backward leaves behind (LayerErrors).
// In the last layer c and x are gathered before z1, and the gradients dz1 and dc scattered: read_rows.h.
// Where ranks hold the layer together, each has some heads and some columns of u: c Wo, h W2, dx and dy1 are
// summed over them (rank_sums.h), everything else is either a rank's own or the same on all.

using kernels::DropoutSite;
using tensor::ConstTensorView;
using tensor::TensorView;

/// [T, parts * D] as [T, parts, H, K], or [T, H, K] for one part.
template <typename View>
View by_heads(const describe::Attention& attention, const View& view, std::int64_t num_parts) {
  const std::int64_t H = attention.num_heads;
  const std::int64_t K = attention.head_width;
  const tensor::Shape shape =
      num_parts == 1 ? tensor::Shape{view.size(0), H, K} : tensor::Shape{view.size(0), num_parts, H, K};
  return {view.raw(), view.dtype(), shape};
}

/// Queries', keys' or values' part of a bias.
TensorView third_of(const TensorView& bias_3D, std::int64_t part) {
  const std::int64_t D = bias_3D.num_elements() / 3;
  return {bias_3D.data<float>() + part * D, {D}};
}

/// What of attention goes on.
TensorView context_of(const Pass& pass, std::size_t layer, const LayerActivations& kept) {
  return pass.is_last(layer) ? kept.read_context_RD : kept.context_TD;
}

kernels::RowIdentities identities_behind_attention(const Pass& pass, std::size_t layer) {
  return pass.is_last(layer) ? pass.read_rows() : pass.rows();
}

/// The parameters of a norm and where their gradients go, and that of the bias of the sublayer's last map.
struct NormParameters {
  ConstTensorView gamma_D;
  TensorView dgamma_D, dbeta_D, db_D;
};

/// Goes back through a norm, its residual and its dropout. dx_RD goes in as the gradient of the norm's output
/// and comes out as that of the residual. Returns that of the sublayer's output, which goes to
/// `kept_error_RD` if that is given: without dropout it is the same.
TensorView norm_backward(const Pass& pass, const kernels::Dropout& dropout,
                         const kernels::RowIdentities& rows, const NormParameters& norm,
                         const NormActivations& kept, const TensorView& kept_error_RD,
                         const Transients& transients, const TensorView& dx_RD) {
  TensorView dbranch_RD;
  if (dropout.is_on()) dbranch_RD = kept_error_RD ? kept_error_RD : transients.dbranch_RD;
  kernels::layer_norm_backward(pass.stream, {.dy_TD = dx_RD,
                                             .z_TD = kept.z_TD,
                                             .mean_T = kept.mean_T,
                                             .inverse_deviation_T = kept.inverse_deviation_T,
                                             .gamma_D = norm.gamma_D,
                                             .dropout = dropout,
                                             .rows = rows,
                                             .dz_TD = dx_RD,
                                             .dx_TD = dbranch_RD,
                                             .dgamma_D = norm.dgamma_D,
                                             .dbeta_D = norm.dbeta_D,
                                             .db_D = norm.db_D});
  if (dropout.is_on()) return dbranch_RD;
  if (!kept_error_RD) return dx_RD;
  tensor::copy(pass.stream, dx_RD, kept_error_RD);  // dx goes on to other values
  return kept_error_RD;
}

void map_gradient(const Pass& pass, const ConstTensorView& x_TD, const ConstTensorView& dy_TE,
                  const TensorView& dw_ED) {
  kernels::linear_backward_weight(
      pass.stream, {.x_TD = x_TD, .dy_TE = dy_TE, .dw_ED = dw_ED, .accumulate = pass.accumulate});
}

void attention_sublayer_forward(const Pass& pass, std::size_t layer, const EncoderLayerWeights& weights,
                                const ConstTensorView& x_TD, const LayerActivations& kept) {
  const describe::Attention& attention = pass.model.layers[layer].attention;
  kernels::linear_forward(
      pass.stream,
      {.x_TD = x_TD, .w_ED = weights.qkv_weight_3DD, .b_E = weights.qkv_bias_3D, .y_TE = kept.qkv_T3D});
  kernels::attention_forward(pass.stream, {.qkv_T3HK = by_heads(attention, kept.qkv_T3D, 3),
                                           .sequences = pass.micro_batch.sequences,
                                           .samples = pass.micro_batch.samples,
                                           .work = pass.micro_batch.attention,
                                           .dropout = pass.dropout_at(layer, DropoutSite::AttentionWeights),
                                           .context_THK = by_heads(attention, kept.context_TD, 1),
                                           .lse_HT = kept.lse_HT,
                                           .keep_bits = kept.keep_bits});
  ConstTensorView residual_RD = x_TD;
  if (pass.is_last(layer)) {
    gather_read_rows(pass, kept.context_TD, kept.read_context_RD);
    gather_read_rows(pass, x_TD, kept.y1_RD);
    residual_RD = kept.y1_RD;
  }
  kernels::linear_forward(pass.stream, {.x_TD = context_of(pass, layer, kept),
                                        .w_ED = weights.attention_output_weight_DD,
                                        .b_E = once(pass, weights.attention_output_bias_D),
                                        .y_TE = kept.norm1.z_TD});
  sum_over_ranks(pass, kept.norm1.z_TD);
  kernels::layer_norm_forward(pass.stream, {.x_TD = kept.norm1.z_TD,
                                            .residual_TD = residual_RD,
                                            .gamma_D = weights.attention_norm_weight_D,
                                            .beta_D = weights.attention_norm_bias_D,
                                            .epsilon = pass.norm_epsilon(),
                                            .dropout = pass.dropout_at(layer, DropoutSite::AttentionOutput),
                                            .rows = identities_behind_attention(pass, layer),
                                            .z_TD = kept.norm1.z_TD,
                                            .y_TD = kept.y1_RD,
                                            .mean_T = kept.norm1.mean_T,
                                            .inverse_deviation_T = kept.norm1.inverse_deviation_T});
}

/// Gives h and what is kept of u. Returns h. A forward whose MLP is recomputed asks for what is kept, too: h
/// then has the same bytes both times (kernels/mlp_gelu.h).
TensorView gelu_of_mlp_forward(const Pass& pass, const EncoderLayerWeights& weights,
                               const LayerActivations& kept, const Transients& transients) {
  const TensorView h_RF = kept.h_RF ? kept.h_RF : transients.mlp_RF;
  kernels::mlp_gelu_forward(pass.stream, {.x_TD = kept.y1_RD,
                                          .w1_FD = weights.intermediate_weight_FD,
                                          .b1_F = weights.intermediate_bias_F,
                                          .h_TF = h_RF,
                                          .kept_TF = kept.gelu_RF});
  return h_RF;
}

void mlp_sublayer_forward(const Pass& pass, std::size_t layer, const EncoderLayerWeights& weights,
                          const LayerActivations& kept, const Transients& transients,
                          const TensorView& y_RD) {
  const TensorView h_RF = gelu_of_mlp_forward(pass, weights, kept, transients);
  kernels::linear_forward(pass.stream, {.x_TD = h_RF,
                                        .w_ED = weights.output_weight_DF,
                                        .b_E = once(pass, weights.output_bias_D),
                                        .y_TE = kept.norm2.z_TD});
  sum_over_ranks(pass, kept.norm2.z_TD);
  kernels::layer_norm_forward(pass.stream, {.x_TD = kept.norm2.z_TD,
                                            .residual_TD = kept.y1_RD,
                                            .gamma_D = weights.output_norm_weight_D,
                                            .beta_D = weights.output_norm_bias_D,
                                            .epsilon = pass.norm_epsilon(),
                                            .dropout = pass.dropout_at(layer, DropoutSite::MlpOutput),
                                            .rows = identities_behind_attention(pass, layer),
                                            .z_TD = kept.norm2.z_TD,
                                            .y_TD = y_RD,
                                            .mean_T = kept.norm2.mean_T,
                                            .inverse_deviation_T = kept.norm2.inverse_deviation_T});
}

/// dy_RD goes in as the gradient of the layer's output and comes out as that of y1.
void mlp_sublayer_backward(const Pass& pass, std::size_t layer, const EncoderLayerWeights& weights,
                           const EncoderLayerGradients& gradients, const LayerActivations& kept,
                           const LayerErrors& errors, const Transients& transients,
                           MapGradients map_gradients, const TensorView& dy_RD) {
  const TensorView dbranch_RD = norm_backward(pass, pass.dropout_at(layer, DropoutSite::MlpOutput),
                                              identities_behind_attention(pass, layer),
                                              {weights.output_norm_weight_D, gradients.output_norm_weight_D,
                                               gradients.output_norm_bias_D, gradients.output_bias_D},
                                              kept.norm2, errors.dmlp_RD, transients, dy_RD);
  if (map_gradients == MapGradients::Now) {
    map_gradient(pass, mlp_hidden(pass, kept, transients), dbranch_RD, gradients.output_weight_DF);
  }
  // Where nothing comes later, h has been read for the last time.
  const TensorView du_RF = errors.du_RF ? errors.du_RF : transients.mlp_RF;
  kernels::mlp_gelu_backward(pass.stream, {.dy_TD = dbranch_RD,
                                           .w2_DF = weights.output_weight_DF,
                                           .kept_TF = kept.gelu_RF,
                                           .du_TF = du_RF,
                                           .db1_F = gradients.intermediate_bias_F});
  if (map_gradients == MapGradients::Now) {
    map_gradient(pass, kept.y1_RD, du_RF, gradients.intermediate_weight_FD);
  }
  kernels::linear_backward_input(pass.stream, {.dy_TE = du_RF,
                                               .w_ED = weights.intermediate_weight_FD,
                                               .dx_TD = dy_RD,
                                               .accumulate = onto_residual(pass)});
  sum_over_ranks(pass, dy_RD);
}

/// dy_RD goes in as the gradient of y1, dx_TD comes out as that of x.
void attention_sublayer_backward(const Pass& pass, std::size_t layer, const EncoderLayerWeights& weights,
                                 const EncoderLayerGradients& gradients, const ConstTensorView& x_TD,
                                 const LayerActivations& kept, const LayerErrors& errors,
                                 const Transients& transients, MapGradients map_gradients,
                                 const TensorView& dy_RD, const TensorView& dx_TD) {
  const describe::Attention& attention = pass.model.layers[layer].attention;
  const TensorView dbranch_RD = norm_backward(
      pass, pass.dropout_at(layer, DropoutSite::AttentionOutput), identities_behind_attention(pass, layer),
      {weights.attention_norm_weight_D, gradients.attention_norm_weight_D, gradients.attention_norm_bias_D,
       gradients.attention_output_bias_D},
      kept.norm1, errors.dattention_RD, transients, dy_RD);
  if (map_gradients == MapGradients::Now) {
    map_gradient(pass, context_of(pass, layer, kept), dbranch_RD, gradients.attention_output_weight_DD);
  }
  const TensorView dcontext_RD = pass.is_last(layer) ? transients.dread_context_RD : transients.dcontext_TD;
  kernels::linear_backward_input(
      pass.stream, {.dy_TE = dbranch_RD, .w_ED = weights.attention_output_weight_DD, .dx_TD = dcontext_RD});
  if (pass.is_last(layer)) {
    scatter_read_rows(pass, dcontext_RD, transients.dcontext_TD);
    scatter_read_rows(pass, dy_RD, dx_TD);
  }
  const TensorView dqkv_T3D = errors.dqkv_T3D ? errors.dqkv_T3D : transients.dqkv_T3D;
  kernels::attention_backward(pass.stream, {.qkv_T3HK = by_heads(attention, kept.qkv_T3D, 3),
                                            .context_THK = by_heads(attention, kept.context_TD, 1),
                                            .lse_HT = kept.lse_HT,
                                            .dcontext_THK = by_heads(attention, transients.dcontext_TD, 1),
                                            .sequences = pass.micro_batch.sequences,
                                            .samples = pass.micro_batch.samples,
                                            .work = pass.micro_batch.attention,
                                            .dropout = pass.dropout_at(layer, DropoutSite::AttentionWeights),
                                            .keep_bits = kept.keep_bits,
                                            .dqkv_T3HK = by_heads(attention, dqkv_T3D, 3)});
  if (map_gradients == MapGradients::Now) map_gradient(pass, x_TD, dqkv_T3D, gradients.qkv_weight_3DD);
  // A key's bias shifts all scores of a query alike, which softmax takes back: its gradient is zero.
  kernels::add_column_sums(
      pass.stream, {.x_T3D = dqkv_T3D,
                    .sum_3_D = {third_of(gradients.qkv_bias_3D, 0), {}, third_of(gradients.qkv_bias_3D, 2)}});
  kernels::linear_backward_input(
      pass.stream,
      {.dy_TE = dqkv_T3D, .w_ED = weights.qkv_weight_3DD, .dx_TD = dx_TD, .accumulate = onto_residual(pass)});
  sum_over_ranks(pass, dx_TD);
}

}  // namespace

void encoder_layer_forward(const Pass& pass, std::size_t layer, const EncoderLayerWeights& weights,
                           const ConstTensorView& x_TD, const LayerActivations& kept,
                           const Transients& transients, const TensorView& y_RD) {
  attention_sublayer_forward(pass, layer, weights, x_TD, kept);
  mlp_sublayer_forward(pass, layer, weights, kept, transients, y_RD);
}

TensorView mlp_hidden(const Pass& pass, const LayerActivations& kept, const Transients& transients) {
  // The CPU, where it is not kept, makes it of u.
  if (kept.h_RF) return kept.h_RF;
  kernels::gelu_forward(pass.stream, {.x = kept.gelu_RF, .y = transients.mlp_RF});
  return transients.mlp_RF;
}

void recompute_mlp(const Pass& pass, const EncoderLayerWeights& weights, const LayerActivations& kept,
                   const Transients& transients) {
  gelu_of_mlp_forward(pass, weights, kept, transients);
}

void encoder_layer_backward(const Pass& pass, std::size_t layer, const EncoderLayerWeights& weights,
                            const EncoderLayerGradients& gradients, const ConstTensorView& x_TD,
                            const LayerActivations& kept, const LayerErrors& errors,
                            const Transients& transients, MapGradients map_gradients, const TensorView& dy_RD,
                            const TensorView& dx_TD) {
  mlp_sublayer_backward(pass, layer, weights, gradients, kept, errors, transients, map_gradients, dy_RD);
  attention_sublayer_backward(pass, layer, weights, gradients, x_TD, kept, errors, transients, map_gradients,
                              dy_RD, dx_TD);
}

void encoder_layer_weight_gradient(const Pass& pass, std::size_t layer,
                                   const EncoderLayerGradients& gradients, const ConstTensorView& x_TD,
                                   const LayerActivations& kept, const LayerErrors& errors,
                                   const Transients& transients) {
  map_gradient(pass, mlp_hidden(pass, kept, transients), errors.dmlp_RD, gradients.output_weight_DF);
  map_gradient(pass, kept.y1_RD, errors.du_RF, gradients.intermediate_weight_FD);
  map_gradient(pass, context_of(pass, layer, kept), errors.dattention_RD,
               gradients.attention_output_weight_DD);
  map_gradient(pass, x_TD, errors.dqkv_T3D, gradients.qkv_weight_3DD);
}

}  // namespace plenum::model

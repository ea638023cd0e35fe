#include "plenum/model/masked_language_head.h"

#include "plenum/kernels/activation.h"
#include "plenum/kernels/layer_norm.h"
#include "plenum/kernels/linear.h"
#include "plenum/kernels/vocabulary_loss.h"

namespace plenum::model {

// M masked tokens, D width, V words. Only masked rows come here.
//
// Forward:  u = x W + b;  z = gelu(u);  y = norm(z);  logits = y word^T + b;  losses
// Kept:     u, z, mean and inverse deviation, y, logits, log-sum-exp
// Backward: from the last to the first. The word embedding gets a gradient here and another as embedding.

using tensor::ConstTensorView;
using tensor::TensorView;

void masked_language_transform_forward(const Pass& pass, const MaskedLanguageWeights& weights,
                                       const ConstTensorView& x_MD, const MaskedLanguageActivations& kept) {
  kernels::linear_forward(pass.stream, {.x_TD = x_MD,
                                        .w_ED = weights.transform_weight_DD,
                                        .b_E = weights.transform_bias_D,
                                        .y_TE = kept.u_MD});
  kernels::gelu_forward(pass.stream, {.x = kept.u_MD, .y = kept.norm.z_TD});
  kernels::layer_norm_forward(pass.stream, {.x_TD = kept.norm.z_TD,
                                            .residual_TD = {},
                                            .gamma_D = weights.norm_weight_D,
                                            .beta_D = weights.norm_bias_D,
                                            .epsilon = pass.norm_epsilon(),
                                            .dropout = {},
                                            .rows = {},
                                            .z_TD = {},
                                            .y_TD = kept.y_MD,
                                            .mean_T = kept.norm.mean_T,
                                            .inverse_deviation_T = kept.norm.inverse_deviation_T});
}

void masked_language_head_forward(const Pass& pass, const MaskedLanguageWeights& weights,
                                  const ConstTensorView& x_MD, const MaskedLanguageActivations& kept) {
  masked_language_transform_forward(pass, weights, x_MD, kept);
  kernels::vocabulary_loss_forward(pass.stream, {.h_MD = kept.y_MD,
                                                 .w_VD = weights.word_VD,
                                                 .b_V = weights.decoder_bias_V,
                                                 .label_M = pass.micro_batch.masked_label_M,
                                                 .logits_MW = kept.logits_MW,
                                                 .tiles_MN2 = kept.tiles_MN2,
                                                 .lse_M = kept.lse_M,
                                                 .loss_M = kept.loss_M,
                                                 .prediction_M = kept.prediction_M});
}

void masked_language_head_backward(const Pass& pass, const MaskedLanguageWeights& weights,
                                   const MaskedLanguageGradients& gradients, const ConstTensorView& x_MD,
                                   const MaskedLanguageActivations& kept, const Transients& transients,
                                   const ConstTensorView& loss_scale_1, const TensorView& dx_MD) {
  kernels::vocabulary_loss_backward(pass.stream, {.h_MD = kept.y_MD,
                                                  .w_VD = weights.word_VD,
                                                  .label_M = pass.micro_batch.masked_label_M,
                                                  .lse_M = kept.lse_M,
                                                  .scale_1 = loss_scale_1,
                                                  .logits_MW = kept.logits_MW,
                                                  .dh_MD = transients.dy_MD,
                                                  .dw_VD = gradients.word_VD,
                                                  .db_V = gradients.decoder_bias_V,
                                                  .accumulate = pass.accumulate});
  kernels::layer_norm_backward(pass.stream, {.dy_TD = transients.dy_MD,
                                             .z_TD = kept.norm.z_TD,
                                             .mean_T = kept.norm.mean_T,
                                             .inverse_deviation_T = kept.norm.inverse_deviation_T,
                                             .gamma_D = weights.norm_weight_D,
                                             .dropout = {},
                                             .rows = {},
                                             .dz_TD = transients.dy_MD,
                                             .dx_TD = {},
                                             .dgamma_D = gradients.norm_weight_D,
                                             .dbeta_D = gradients.norm_bias_D});
  kernels::gelu_backward(pass.stream, {.x = kept.u_MD, .dy = transients.dy_MD, .dx = transients.dy_MD});
  kernels::linear_backward_weight(pass.stream, {.x_TD = x_MD,
                                                .dy_TE = transients.dy_MD,
                                                .dw_ED = gradients.transform_weight_DD,
                                                .db_E = gradients.transform_bias_D,
                                                .accumulate = pass.accumulate});
  kernels::linear_backward_input(
      pass.stream, {.dy_TE = transients.dy_MD, .w_ED = weights.transform_weight_DD, .dx_TD = dx_MD});
}

}  // namespace plenum::model

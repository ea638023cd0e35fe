#include "plenum/model/next_sentence_head.h"

#include "plenum/kernels/activation.h"
#include "plenum/kernels/class_loss.h"
#include "plenum/kernels/linear.h"

namespace plenum::model {

// S sequences, D width. Only their first rows come here.
//
// Forward:  pooled = tanh(x Wp + b);  logits = pooled W + b;  losses
// Kept:     pooled, logits
// Backward: from the last to the first

using tensor::ConstTensorView;
using tensor::TensorView;

void next_sentence_head_forward(const Pass& pass, const NextSentenceWeights& weights,
                                const ConstTensorView& x_SD, const NextSentenceActivations& kept) {
  kernels::linear_forward(
      pass.stream,
      {.x_TD = x_SD, .w_ED = weights.pooler_weight_DD, .b_E = weights.pooler_bias_D, .y_TE = kept.pooled_SD});
  kernels::tanh_forward(pass.stream, {.x = kept.pooled_SD, .y = kept.pooled_SD});
  kernels::linear_forward(
      pass.stream,
      {.x_TD = kept.pooled_SD, .w_ED = weights.weight_2D, .b_E = weights.bias_2, .y_TE = kept.logits_S2});
  kernels::class_loss_forward(pass.stream, {.logits_SC = kept.logits_S2,
                                            .label_S = pass.micro_batch.next_sentence_label_S,
                                            .loss_S = kept.loss_S});
}

void next_sentence_head_backward(const Pass& pass, const NextSentenceWeights& weights,
                                 const NextSentenceGradients& gradients, const ConstTensorView& x_SD,
                                 const NextSentenceActivations& kept, const Transients& transients,
                                 const ConstTensorView& loss_scale_1, const TensorView& dx_SD) {
  const TensorView dlogits_S2 = kept.logits_S2;
  kernels::class_loss_backward(pass.stream, {.logits_SC = kept.logits_S2,
                                             .label_S = pass.micro_batch.next_sentence_label_S,
                                             .scale_1 = loss_scale_1,
                                             .dlogits_SC = dlogits_S2});
  kernels::linear_backward_weight(pass.stream, {.x_TD = kept.pooled_SD,
                                                .dy_TE = dlogits_S2,
                                                .dw_ED = gradients.weight_2D,
                                                .db_E = gradients.bias_2,
                                                .accumulate = pass.accumulate});
  kernels::linear_backward_input(
      pass.stream, {.dy_TE = dlogits_S2, .w_ED = weights.weight_2D, .dx_TD = transients.dpooled_SD});
  kernels::tanh_backward(pass.stream,
                         {.y = kept.pooled_SD, .dy = transients.dpooled_SD, .dx = transients.dpooled_SD});
  kernels::linear_backward_weight(pass.stream, {.x_TD = x_SD,
                                                .dy_TE = transients.dpooled_SD,
                                                .dw_ED = gradients.pooler_weight_DD,
                                                .db_E = gradients.pooler_bias_D,
                                                .accumulate = pass.accumulate});
  kernels::linear_backward_input(
      pass.stream, {.dy_TE = transients.dpooled_SD, .w_ED = weights.pooler_weight_DD, .dx_TD = dx_SD});
}

}  // namespace plenum::model

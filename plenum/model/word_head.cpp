#include "plenum/model/word_head.h"

#include "plenum/kernels/activation.h"
#include "plenum/kernels/layer_norm.h"
#include "plenum/kernels/vocabulary_loss.h"
#include "plenum/model/head_dense.h"
#include "plenum/model/rank_sums.h"

namespace plenum::model {

// M labels, D width, V words. Only the rows that the objective reads come here.
//
// Forward:  u = x W + b;  z = gelu(u);  y = norm(z);  logits = y word^T + b;  losses
// Kept:     u, z, mean and inverse deviation, y, logits, log-sum-exp
// Backward: from the last to the first. The word embedding gets a gradient here and another as embedding.
// Where ranks divide the words, each has the logits of its own. What it knows of a row (maximum, sum of
// exponentials, the label's logit) goes to all, of which each makes the same loss.

using tensor::ConstTensorView;
using tensor::TensorView;

void word_head_transform_forward(const Pass& pass, const HeadWeights& weights, const ConstTensorView& x_MD,
                                 const HeadActivations& kept) {
  head_dense_forward(pass, weights, x_MD, kept.u_MD);
  kernels::gelu_forward(pass.stream, {.x = kept.u_MD, .y = kept.norm.z_TD});
  kernels::layer_norm_forward(pass.stream, {.x_TD = kept.norm.z_TD,
                                            .residual_TD = {},
                                            .gamma_D = weights.norm_weight,
                                            .beta_D = weights.norm_bias,
                                            .epsilon = pass.norm_epsilon(),
                                            .dropout = {},
                                            .rows = {},
                                            .z_TD = {},
                                            .y_TD = kept.y_MD,
                                            .mean_T = kept.norm.mean_T,
                                            .inverse_deviation_T = kept.norm.inverse_deviation_T});
}

void word_head_forward(const Pass& pass, std::size_t objective, const HeadWeights& weights,
                       const ConstTensorView& x_MD, const HeadActivations& kept) {
  const ConstTensorView& label_M = pass.micro_batch.objectives[objective].label_M;
  word_head_transform_forward(pass, weights, x_MD, kept);
  TensorView part_M4;
  if (pass.group != nullptr) {
    const std::int64_t M = kept.part_PM4.size(1);
    const auto index = static_cast<std::int64_t>(pass.group->index());
    part_M4 = {kept.part_PM4.data<float>() + index * M * kept.part_PM4.size(2), {M, kept.part_PM4.size(2)}};
  }
  kernels::vocabulary_loss_forward(pass.stream, {.h_MD = kept.y_MD,
                                                 .w_VD = weights.output_weight,
                                                 .b_V = weights.output_bias,
                                                 .label_M = label_M,
                                                 .words = words_here(pass),
                                                 .logits_MW = kept.logits_MW,
                                                 .tiles_MN2 = kept.tiles_MN2,
                                                 .lse_M = kept.lse_M,
                                                 .loss_M = kept.loss_M,
                                                 .prediction_M = kept.prediction_M,
                                                 .part_M4 = part_M4});
  if (pass.group == nullptr) return;
  gather_over_ranks(pass, kept.part_PM4);
  kernels::combine_vocabulary_parts(pass.stream, {.part_PM4 = kept.part_PM4,
                                                  .label_M = label_M,
                                                  .lse_M = kept.lse_M,
                                                  .loss_M = kept.loss_M,
                                                  .prediction_M = kept.prediction_M});
}

void word_head_backward(const Pass& pass, std::size_t objective, const HeadWeights& weights,
                        const HeadGradients& gradients, const ConstTensorView& x_MD,
                        const HeadActivations& kept, const ConstTensorView& loss_scale_1,
                        const TensorView& dy_MD, const TensorView& dx_MD) {
  kernels::vocabulary_loss_backward(pass.stream, {.h_MD = kept.y_MD,
                                                  .w_VD = weights.output_weight,
                                                  .label_M = pass.micro_batch.objectives[objective].label_M,
                                                  .words = words_here(pass),
                                                  .lse_M = kept.lse_M,
                                                  .scale_1 = loss_scale_1,
                                                  .logits_MW = kept.logits_MW,
                                                  .dh_MD = dy_MD,
                                                  .dw_VD = gradients.output_weight,
                                                  .db_V = gradients.output_bias,
                                                  .accumulate = pass.accumulate_words()});
  sum_over_ranks(pass, dy_MD);
  kernels::layer_norm_backward(pass.stream, {.dy_TD = dy_MD,
                                             .z_TD = kept.norm.z_TD,
                                             .mean_T = kept.norm.mean_T,
                                             .inverse_deviation_T = kept.norm.inverse_deviation_T,
                                             .gamma_D = weights.norm_weight,
                                             .dropout = {},
                                             .rows = {},
                                             .dz_TD = dy_MD,
                                             .dx_TD = {},
                                             .dgamma_D = gradients.norm_weight,
                                             .dbeta_D = gradients.norm_bias});
  kernels::gelu_backward(pass.stream, {.x = kept.u_MD, .dy = dy_MD, .dx = dy_MD});
  head_dense_backward(pass, weights, gradients, x_MD, dy_MD, dx_MD);
}

}  // namespace plenum::model

#include "plenum/model/class_head.h"

#include "plenum/kernels/activation.h"
#include "plenum/kernels/class_loss.h"
#include "plenum/kernels/linear.h"
#include "plenum/model/head_dense.h"

namespace plenum::model {

// M labels, D width, C classes. Only the rows that the objective reads come here.
//
// Forward:  pooled = tanh(x Wp + b);  logits = pooled W + b;  losses
// Kept:     pooled, logits
// Backward: from the last to the first

using tensor::ConstTensorView;
using tensor::TensorView;

void class_head_forward(const Pass& pass, const HeadWeights& weights, const ConstTensorView& x_MD,
                        const ConstTensorView& label_M, const HeadActivations& kept) {
  head_dense_forward(pass, weights, x_MD, kept.y_MD);
  kernels::tanh_forward(pass.stream, {.x = kept.y_MD, .y = kept.y_MD});
  kernels::linear_forward(
      pass.stream,
      {.x_TD = kept.y_MD, .w_ED = weights.output_weight, .b_E = weights.output_bias, .y_TE = kept.logits_MW});
  kernels::class_loss_forward(pass.stream,
                              {.logits_SC = kept.logits_MW, .label_S = label_M, .loss_S = kept.loss_M});
}

void class_head_backward(const Pass& pass, const HeadWeights& weights, const HeadGradients& gradients,
                         const ConstTensorView& x_MD, const ConstTensorView& label_M,
                         const HeadActivations& kept, const ConstTensorView& loss_scale_1,
                         const TensorView& dy_MD, const TensorView& dx_MD) {
  const TensorView dlogits_MC = kept.logits_MW;
  kernels::class_loss_backward(
      pass.stream,
      {.logits_SC = kept.logits_MW, .label_S = label_M, .scale_1 = loss_scale_1, .dlogits_SC = dlogits_MC});
  kernels::linear_backward_weight(pass.stream, {.x_TD = kept.y_MD,
                                                .dy_TE = dlogits_MC,
                                                .dw_ED = gradients.output_weight,
                                                .db_E = gradients.output_bias,
                                                .accumulate = pass.accumulate});
  kernels::linear_backward_input(pass.stream,
                                 {.dy_TE = dlogits_MC, .w_ED = weights.output_weight, .dx_TD = dy_MD});
  kernels::tanh_backward(pass.stream, {.y = kept.y_MD, .dy = dy_MD, .dx = dy_MD});
  head_dense_backward(pass, weights, gradients, x_MD, dy_MD, dx_MD);
}

}  // namespace plenum::model

#include "plenum/model/head_dense.h"

#include "plenum/kernels/linear.h"

namespace plenum::model {

using tensor::ConstTensorView;
using tensor::TensorView;

void head_dense_forward(const Pass& pass, const HeadWeights& weights, const ConstTensorView& x_MD,
                        const TensorView& u_MD) {
  kernels::linear_forward(
      pass.stream,
      {.x_TD = x_MD, .w_ED = weights.transform_weight, .b_E = weights.transform_bias, .y_TE = u_MD});
}

void head_dense_backward(const Pass& pass, const HeadWeights& weights, const HeadGradients& gradients,
                         const ConstTensorView& x_MD, const ConstTensorView& du_MD, const TensorView& dx_MD) {
  kernels::linear_backward_weight(pass.stream, {.x_TD = x_MD,
                                                .dy_TE = du_MD,
                                                .dw_ED = gradients.transform_weight,
                                                .db_E = gradients.transform_bias,
                                                .accumulate = pass.accumulate});
  kernels::linear_backward_input(pass.stream,
                                 {.dy_TE = du_MD, .w_ED = weights.transform_weight, .dx_TD = dx_MD});
}

}  // namespace plenum::model

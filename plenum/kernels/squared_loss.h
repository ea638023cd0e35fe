#pragma once

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

// M rows of one logit each, few. Logits have the type of activations. A label holds the bits of a float y;
// -1, which are those of no number, stands for no label: its row has the loss 0 and the gradient 0.

/// Computes (logit - y)^2 of every row.
struct SquaredLossForward {
  tensor::ConstTensorView logits_M1;
  tensor::ConstTensorView label_M;  ///< Int32
  tensor::TensorView loss_M;        ///< Float32; overwritten
};
void squared_loss_forward(const tensor::Stream& stream, const SquaredLossForward& args);

/// Computes dlogits = 2 scale (logit - y).
struct SquaredLossBackward {
  tensor::ConstTensorView logits_M1;
  tensor::ConstTensorView label_M;
  tensor::ConstTensorView scale_1;  ///< Float64
  tensor::TensorView dlogits_M1;    ///< overwritten; may be logits_M1
};
void squared_loss_backward(const tensor::Stream& stream, const SquaredLossBackward& args);

}  // namespace plenum::kernels

#pragma once

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

// S rows, C classes, few of both. Logits have the type of activations. The label -1
// stands for no label: its row has the loss 0 and the gradient 0.

/// Computes the cross-entropy -log softmax(logits)[label] of every row.
struct ClassLossForward {
  tensor::ConstTensorView logits_SC;
  tensor::ConstTensorView label_S;  ///< Int32, in [-1, C)
  tensor::TensorView loss_S;        ///< Float32; overwritten
};
void class_loss_forward(const tensor::Stream& stream, const ClassLossForward& args);

/// Computes dlogits = scale (softmax(logits) - onehot(label)).
struct ClassLossBackward {
  tensor::ConstTensorView logits_SC;
  tensor::ConstTensorView label_S;
  tensor::ConstTensorView scale_1;  ///< Float64
  tensor::TensorView dlogits_SC;    ///< overwritten; may be logits_SC
};
void class_loss_backward(const tensor::Stream& stream, const ClassLossBackward& args);

}  // namespace plenum::kernels

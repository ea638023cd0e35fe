#pragma once

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

// M rows in groups, C columns of logits, of the type of activations. A label is a batch::GroupLabel: a group
// begins with a row that is first in one and ends before the next such row, or before the label -1, which
// stands for a row of no group, with the loss 0 and the gradient 0. In each column one row of a group is the
// answer: p is the softmax of a column over the group's rows.

/// Computes for every group the mean over its columns of the cross-entropy -log p[answer].
struct GroupLossForward {
  tensor::ConstTensorView logits_MC;
  tensor::ConstTensorView label_M;  ///< Int32
  tensor::TensorView loss_M;        ///< Float32; overwritten: a group's in its first row, 0 in all others
};
void group_loss_forward(const tensor::Stream& stream, const GroupLossForward& args);

/// Computes dlogits = scale / C (p - onehot(answer)).
struct GroupLossBackward {
  tensor::ConstTensorView logits_MC;
  tensor::ConstTensorView label_M;
  tensor::ConstTensorView scale_1;  ///< Float64
  tensor::TensorView dlogits_MC;    ///< overwritten; may be logits_MC
};
void group_loss_backward(const tensor::Stream& stream, const GroupLossBackward& args);

}  // namespace plenum::kernels

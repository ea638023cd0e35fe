#pragma once

#include "plenum/model/activations.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"

namespace plenum::model {

// The head of an objective whose labels are a few classes. M labels, one for each row that the objective
// reads.

/// Computes from those rows of the last layer's output the logits of the classes, and the losses. Overwrites
/// `kept`.
void class_head_forward(const Pass& pass, const HeadWeights& weights, const tensor::ConstTensorView& x_MD,
                        const tensor::ConstTensorView& label_M, const HeadActivations& kept);

/// The gradients of loss_scale * (sum of the losses): adds to `gradients` and overwrites dx_MD. With
/// Accumulate::No it overwrites those of weights. The logits are used up; dy_MD is room to work in.
void class_head_backward(const Pass& pass, const HeadWeights& weights, const HeadGradients& gradients,
                         const tensor::ConstTensorView& x_MD, const tensor::ConstTensorView& label_M,
                         const HeadActivations& kept, const tensor::ConstTensorView& loss_scale_1,
                         const tensor::TensorView& dy_MD, const tensor::TensorView& dx_MD);

}  // namespace plenum::model

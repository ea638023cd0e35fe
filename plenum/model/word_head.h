#pragma once

#include <cstddef>

#include "plenum/model/activations.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"

namespace plenum::model {

// The head of an objective whose labels are words. M labels, one for each row that the objective reads.

/// Computes from those rows of the last layer's output the transformed rows y_MD, from which logits follow.
/// Overwrites the part of `kept` up to y_MD.
void word_head_transform_forward(const Pass& pass, const HeadWeights& weights,
                                 const tensor::ConstTensorView& x_MD, const HeadActivations& kept);

/// Computes logits, losses and predictions. Overwrites `kept`.
void word_head_forward(const Pass& pass, std::size_t objective, const HeadWeights& weights,
                       const tensor::ConstTensorView& x_MD, const HeadActivations& kept);

/// The gradients of loss_scale * (sum of the losses): adds to `gradients` and overwrites dx_MD. With
/// Accumulate::No it overwrites those of weights, the words' among them. The logits are used up; dy_MD is
/// room to work in.
void word_head_backward(const Pass& pass, std::size_t objective, const HeadWeights& weights,
                        const HeadGradients& gradients, const tensor::ConstTensorView& x_MD,
                        const HeadActivations& kept, const tensor::ConstTensorView& loss_scale_1,
                        const tensor::TensorView& dy_MD, const tensor::TensorView& dx_MD);

}  // namespace plenum::model

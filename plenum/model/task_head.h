#pragma once

#include <cstddef>

#include "plenum/model/activations.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"

namespace plenum::model {

// The head of an objective with few logits in a row: next sentences, and every task that a model is
// fine-tuned for. M labels, one for each row that the objective reads.

/// Computes from those rows of the last layer's output the logits. Overwrites the part of `kept` up to them.
void task_head_logits(const Pass& pass, std::size_t objective, const HeadWeights& weights,
                      const tensor::ConstTensorView& x_MD, const HeadActivations& kept);

/// Computes logits and losses. Overwrites `kept`.
void task_head_forward(const Pass& pass, std::size_t objective, const HeadWeights& weights,
                       const tensor::ConstTensorView& x_MD, const HeadActivations& kept);

/// The gradients of loss_scale * (sum of the losses): adds to `gradients` and overwrites dx_MD. With
/// Accumulate::No it overwrites those of weights. The logits are used up; dy_MD is room to work in, left out
/// where the head has no transform.
void task_head_backward(const Pass& pass, std::size_t objective, const HeadWeights& weights,
                        const HeadGradients& gradients, const tensor::ConstTensorView& x_MD,
                        const HeadActivations& kept, const tensor::ConstTensorView& loss_scale_1,
                        const tensor::TensorView& dy_MD, const tensor::TensorView& dx_MD);

}  // namespace plenum::model

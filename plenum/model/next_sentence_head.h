#pragma once

#include "plenum/model/activation_layout.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"

namespace plenum::model {

/// Computes from the last layer's output for the first row of every sequence the logits of "B follows A" (0)
/// and "B is random" (1), and the losses. Overwrites `kept`.
void next_sentence_head_forward(const Pass& pass, const NextSentenceWeights& weights,
                                const tensor::ConstTensorView& x_SD, const NextSentenceActivations& kept);

/// The gradients of loss_scale * (sum of the losses): adds to `gradients` and overwrites dx_SD. With
/// Accumulate::No it overwrites those of weights. The logits are used up.
void next_sentence_head_backward(const Pass& pass, const NextSentenceWeights& weights,
                                 const NextSentenceGradients& gradients, const tensor::ConstTensorView& x_SD,
                                 const NextSentenceActivations& kept, const Transients& transients,
                                 const tensor::ConstTensorView& loss_scale_1,
                                 const tensor::TensorView& dx_SD);

}  // namespace plenum::model

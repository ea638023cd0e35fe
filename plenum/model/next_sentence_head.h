#pragma once

#include "plenum/model/activation_layout.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"

namespace plenum::model {

/// Computes from the first row of every sequence the logits of "B follows A" (0) and "B is random" (1), and
/// the losses. Overwrites `kept`.
void next_sentence_head_forward(const Pass& pass, const NextSentenceWeights& weights,
                                const tensor::ConstTensorView& x_TD, const NextSentenceActivations& kept);

/// The gradients of loss_scale * (sum of the losses): adds to `gradients` and to the first rows of the
/// sequences in dx_TD. With Accumulate::No it overwrites those of weights. The logits are used up.
void next_sentence_head_backward(const Pass& pass, const NextSentenceWeights& weights,
                                 const NextSentenceGradients& gradients, const NextSentenceActivations& kept,
                                 const Transients& transients, const tensor::ConstTensorView& loss_scale_1,
                                 const tensor::TensorView& dx_TD);

}  // namespace plenum::model

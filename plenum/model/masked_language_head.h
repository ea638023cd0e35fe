#pragma once

#include "plenum/model/activation_layout.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"

namespace plenum::model {

/// Computes from the last layer's output for the masked tokens the transformed rows y_MD, from which logits
/// follow. Overwrites the part of `kept` up to y_MD.
void masked_language_transform_forward(const Pass& pass, const MaskedLanguageWeights& weights,
                                       const tensor::ConstTensorView& x_MD,
                                       const MaskedLanguageActivations& kept);

/// Computes logits, losses and predictions of the masked tokens. Overwrites `kept`.
void masked_language_head_forward(const Pass& pass, const MaskedLanguageWeights& weights,
                                  const tensor::ConstTensorView& x_MD, const MaskedLanguageActivations& kept);

/// The gradients of loss_scale * (sum of the losses): adds to `gradients` and overwrites dx_MD. With
/// Accumulate::No it overwrites those of weights, the words' among them. The logits are used up.
void masked_language_head_backward(const Pass& pass, const MaskedLanguageWeights& weights,
                                   const MaskedLanguageGradients& gradients,
                                   const tensor::ConstTensorView& x_MD, const MaskedLanguageActivations& kept,
                                   const Transients& transients, const tensor::ConstTensorView& loss_scale_1,
                                   const tensor::TensorView& dx_MD);

}  // namespace plenum::model

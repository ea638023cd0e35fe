#pragma once

#include "plenum/model/activation_layout.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"

namespace plenum::model {

/// Computes the transformed rows y_MD of the masked tokens, from which logits follow. Overwrites the part of
/// `kept` up to y_MD.
void masked_language_transform_forward(const Pass& pass, const MaskedLanguageWeights& weights,
                                       const tensor::ConstTensorView& x_TD,
                                       const MaskedLanguageActivations& kept);

/// Computes logits, losses and predictions of the masked tokens. Overwrites `kept`.
void masked_language_head_forward(const Pass& pass, const MaskedLanguageWeights& weights,
                                  const tensor::ConstTensorView& x_TD, const MaskedLanguageActivations& kept);

/// The gradients of loss_scale * (sum of the losses): adds to `gradients` and to the masked rows of dx_TD.
/// With Accumulate::No it overwrites those of weights, the words' among them. The logits are used up.
void masked_language_head_backward(const Pass& pass, const MaskedLanguageWeights& weights,
                                   const MaskedLanguageGradients& gradients,
                                   const MaskedLanguageActivations& kept, const Transients& transients,
                                   const tensor::ConstTensorView& loss_scale_1,
                                   const tensor::TensorView& dx_TD);

}  // namespace plenum::model

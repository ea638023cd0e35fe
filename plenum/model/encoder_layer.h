#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/model/activations.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"

namespace plenum::model {

// T rows come in, R go on behind attention: all of them, in the last layer those that heads read.

/// Computes an encoder layer: attention and MLP, each with dropout, residual and layer norm behind it.
/// Overwrites `kept`, y_RD and transients. y_RD may be x_TD where `kept` is not for a backward.
void encoder_layer_forward(const Pass& pass, std::size_t layer, const EncoderLayerWeights& weights,
                           const tensor::ConstTensorView& x_TD, const LayerActivations& kept,
                           const Transients& transients, const tensor::TensorView& y_RD);

/// Computes the inner activations of the layer's MLP again, from what else is kept.
void recompute_mlp(const Pass& pass, const EncoderLayerWeights& weights, const LayerActivations& kept,
                   const Transients& transients);

/// What the MLP's second map reads, gelu(u), as forward or a recomputation gave it; perhaps in transients.
tensor::TensorView mlp_hidden(const Pass& pass, const LayerActivations& kept, const Transients& transients);

/// When the gradients of linear maps' weights are computed: by a backward, or by
/// encoder_layer_weight_gradient() any time behind it.
enum class MapGradients : std::uint8_t { Now, Later };

/// Computes the gradients of the layer's input and of its weights. They are added to `gradients`; with
/// Accumulate::No those of linear maps' weights are overwritten. `kept` is as forward, or a recomputation,
/// left it; a recomputed MLP's is used up unless `errors` are given. These are overwritten;
/// MapGradients::Later needs them.
void encoder_layer_backward(const Pass& pass, std::size_t layer, const EncoderLayerWeights& weights,
                            const EncoderLayerGradients& gradients, const tensor::ConstTensorView& x_TD,
                            const LayerActivations& kept, const LayerErrors& errors,
                            const Transients& transients, MapGradients map_gradients,
                            const tensor::TensorView& dy_RD,   ///< used up
                            const tensor::TensorView& dx_TD);  ///< overwritten; dy_RD where all rows go on

/// Computes the gradients of the linear maps' weights that a backward has left for later.
void encoder_layer_weight_gradient(const Pass& pass, std::size_t layer,
                                   const EncoderLayerGradients& gradients,
                                   const tensor::ConstTensorView& x_TD, const LayerActivations& kept,
                                   const LayerErrors& errors, const Transients& transients);

}  // namespace plenum::model

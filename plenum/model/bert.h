#pragma once

#include "plenum/base/ids.h"
#include "plenum/kernels/step_scalars.h"
#include "plenum/model/activations.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"

namespace plenum::model {

// A whole BERT or a stage of one, layer range by layer range, because a schedule may cut a pass. The
// embedding belongs to the first layer, the heads to the last. A micro-batch of which heads read nothing
// costs nothing, unless its gradients, all zero, are to overwrite what lies there.

/// Computes the encoder's layers [first, end) of a micro-batch, without heads. What the last of a stage's
/// layers gives goes where pass.output_TD says. Throws InternalError if the micro-batch is larger than its
/// memory.
void bert_encoder_forward(const Pass& pass, const BertWeights& weights, const Activations& kept,
                          const Transients& transients, base::LayerId first, base::LayerId end);

/// The same, and with the last layer the heads.
void bert_forward(const Pass& pass, const BertWeights& weights, const Activations& kept,
                  const Transients& transients, base::LayerId first, base::LayerId end);

/// Adds what the forward of the last layer gave to the losses among the step's scalars.
void add_losses(const Pass& pass, const Activations& kept, const tensor::TensorView& scalars_C);

/// Computes again what forward did not keep of a layer, into memory that all layers share: the layer's
/// backward comes before the next recomputation and before any other pass.
void bert_recompute(const Pass& pass, const BertWeights& weights, const Activations& kept,
                    const Transients& transients, schedule::Recomputation what, base::LayerId layer);

/// Adds to the gradients of layers [first, end), or overwrites them whatever lies there: pass.accumulate,
/// which must be the same for all layers of a micro-batch and stage. Their backward comes from the last layer
/// to the first; where layers are recomputed, it goes layer by layer, each behind its recomputation. Losses
/// are multiplied by the scales among the step's scalars. Leaves LayerErrors behind where there is memory for
/// them.
void bert_backward(const Pass& pass, const BertWeights& weights, const BertGradients& gradients,
                   const Activations& kept, const Transients& transients,
                   const tensor::ConstTensorView& scalars_C, base::LayerId first, base::LayerId end);

// The same in two halves, for a micro-batch that has memory for LayerErrors. What the layers before wait for
// is all in the first.

/// All but the gradients of the weights of the layers' linear maps: heads and embedding have theirs here.
void bert_input_gradient(const Pass& pass, const BertWeights& weights, const BertGradients& gradients,
                         const Activations& kept, const Transients& transients,
                         const tensor::ConstTensorView& scalars_C, base::LayerId first, base::LayerId end);

/// The rest, any time later. The first of a step overwrites, whichever micro-batch that is.
void bert_weight_gradient(const Pass& pass, const BertGradients& gradients, const Activations& kept,
                          const Transients& transients, base::LayerId first, base::LayerId end);

}  // namespace plenum::model

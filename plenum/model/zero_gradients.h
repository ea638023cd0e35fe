#pragma once

#include "plenum/base/ids.h"
#include "plenum/model/encoder_layer.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"

namespace plenum::model {

/// Prepares the gradients of layers [first, end), whatever lies there, for the first backward of a step
/// through them. That overwrites the gradients of linear maps' weights, which are nearly all of a model, and
/// adds to the rest. So the rest is set to zero, and also the weights of what the micro-batch has nothing
/// for. With MapGradients::Later the weights of the layers' maps are left to zero_map_gradients().
void zero_gradients(const Pass& pass, const BertGradients& gradients, MapGradients map_gradients,
                    base::LayerId first, base::LayerId end);

/// Sets the gradients of the weights of layers [first, end) to zero, where the micro-batch has nothing for
/// them.
void zero_map_gradients(const Pass& pass, const BertGradients& gradients, base::LayerId first,
                        base::LayerId end);

}  // namespace plenum::model

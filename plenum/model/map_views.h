#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/model/activations.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"

namespace plenum::model {

// The linear maps of a layer by their index in describe::factor_shapes(): queries, keys, values, attention's
// output, the MLP's first and its second. `rows` are those of the micro-batch in that layer.

/// Some columns of a matrix whose rows are those of a micro-batch.
struct MapColumns {
  tensor::TensorView x_TW;
  std::int64_t first_column = 0;
};

/// Whether a map works on the rows behind attention, which in the last layer are those that heads read.
bool is_behind_attention(std::size_t map);

/// What a map read in forward, as that or a recomputation left it; perhaps in transients.
MapColumns map_input(const Pass& pass, std::size_t layer, std::size_t map, const Activations& kept,
                     const Transients& transients, const describe::LayerRows& rows);

/// The gradient at its output, where backward has left errors behind.
MapColumns map_error(std::size_t layer, std::size_t map, const Activations& kept,
                     const describe::LayerRows& rows);

/// The gradient of its weight, [out, in].
tensor::TensorView map_weight_gradient(const EncoderLayerGradients& gradients, std::size_t map);

}  // namespace plenum::model

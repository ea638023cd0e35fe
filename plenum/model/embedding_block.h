#pragma once

#include "plenum/model/activations.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"

namespace plenum::model {

/// Computes the first layer's input from the ids, positions and segments of all rows, padding included.
/// Overwrites `kept` and y_TD.
void embedding_block_forward(const Pass& pass, const EmbeddingWeights& weights, const NormActivations& kept,
                             const tensor::TensorView& y_TD);

/// Adds to `gradients`, or in place of that of the words to Pass::word_rows_RD. dy_TD is used up.
void embedding_block_backward(const Pass& pass, const EmbeddingWeights& weights,
                              const EmbeddingGradients& gradients, const NormActivations& kept,
                              const tensor::TensorView& dy_TD);

}  // namespace plenum::model

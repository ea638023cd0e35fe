#pragma once

#include "plenum/base/ids.h"
#include "plenum/model/activation_layout.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"

namespace plenum::model {

// A whole BERT, layer range by layer range, because a schedule may cut a pass. The embedding belongs to the
// first layer, the heads to the last. A micro-batch without sequences costs nothing.

/// Sums over a micro-batch.
struct LossSums {
  double masked = 0;
  double next_sentence = 0;
};

/// By what the sums of losses are multiplied before gradients are taken: one over the counts of the global
/// batch.
struct LossScale {
  float masked = 1;
  float next_sentence = 1;
};

/// Computes the encoder's layers [first, end) of a micro-batch, without heads. Throws InternalError if the
/// micro-batch is larger than its memory.
void bert_encoder_forward(const Pass& pass, const BertWeights& weights, const Activations& kept,
                          const Transients& transients, base::LayerId first, base::LayerId end);

/// The same, and with the last layer the heads.
void bert_forward(const Pass& pass, const BertWeights& weights, const Activations& kept,
                  const Transients& transients, base::LayerId first, base::LayerId end);

/// What the forward of the last layer gave, summed in the order of rows.
LossSums loss_sums(const Pass& pass, const Activations& kept);

/// Adds to the gradients of layers [first, end), whose backward comes from the last layer to the first.
void bert_backward(const Pass& pass, const BertWeights& weights, const BertGradients& gradients,
                   const Activations& kept, const Transients& transients, const LossScale& scale,
                   base::LayerId first, base::LayerId end);

}  // namespace plenum::model

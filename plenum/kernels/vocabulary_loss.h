#pragma once

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

// M masked positions, D width, V words. Works in tiles of the vocabulary. See docs/math/cross_entropy.md.

/// Computes logits = h w^T + b and for every masked position the cross-entropy -log softmax(logits)[label].
struct VocabularyLossForward {
  tensor::ConstTensorView h_MD;
  tensor::ConstTensorView w_VD;
  tensor::ConstTensorView b_V;
  tensor::ConstTensorView label_M;  ///< Int32, in [0, V)
  tensor::TensorView logits_MV;     ///< overwritten, for backward
  tensor::TensorView lse_M;         ///< log of the sum of exponentials; overwritten, for backward
  tensor::TensorView loss_M;        ///< overwritten
  tensor::TensorView
      prediction_M;  ///< Int32: the greatest logit, the first of equals; overwritten; may be left out
};
void vocabulary_loss_forward(const tensor::Stream& stream, const VocabularyLossForward& args);

/// Computes the gradients of scale * (sum over positions of the loss).
struct VocabularyLossBackward {
  tensor::ConstTensorView h_MD;
  tensor::ConstTensorView w_VD;
  tensor::ConstTensorView label_M;
  tensor::ConstTensorView lse_M;
  float scale = 1;
  tensor::TensorView logits_MV;  ///< as forward left them; overwritten by their gradient
  tensor::TensorView dh_MD;      ///< overwritten
  tensor::TensorView dw_VD;      ///< added to
  tensor::TensorView db_V;       ///< added to
};
void vocabulary_loss_backward(const tensor::Stream& stream, const VocabularyLossBackward& args);

/// Scratch that each thread needs for either.
std::size_t vocabulary_loss_scratch_bytes();

}  // namespace plenum::kernels

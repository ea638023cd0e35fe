#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/kernels/accumulate.h"
#include "plenum/kernels/row_slice.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/product.h"

namespace plenum::kernels {

// M masked positions (there may be none), D width, V words in rows of W = vocabulary_stride(V), N tiles of
// the vocabulary. Rows and logits have the type of activations, weights that of weights, the rest Float32
// unless it says otherwise; no argument may overlap another. The label -1 stands for no label: its position
// has the loss 0 and the gradient 0.
//
// On the CPU a tile of logits is made, summed up and differentiated by one thread while it is in its cache;
// tiles follow from V alone and are combined in their order, so the bytes do not depend on the number of
// threads. See docs/math/cross_entropy.md.

/// Computes logits = h w^T + b and for every masked position the cross-entropy -log softmax(logits)[label].
/// NaN or infinity anywhere in the logits of a position makes its loss not finite, and so does minus infinity
/// at its label. At another word it says that the word never comes.
///
/// Where ranks divide the vocabulary, w and b are a slice of it and labels stay words of the whole. Then
/// part_M4 is given, and in place of losses gets what the slice knows of each position, for
/// combine_vocabulary_parts().
struct VocabularyLossForward {
  tensor::ConstTensorView h_MD;
  tensor::ConstTensorView w_VD;
  tensor::ConstTensorView b_V;
  tensor::ConstTensorView label_M;  ///< Int32, in [-1, V), of the whole vocabulary
  RowSlice words = {};              ///< of w_VD
  tensor::TensorView logits_MW;     ///< overwritten, for backward; columns from V on are anything
  tensor::TensorView tiles_MN2;     ///< N = vocabulary_tiles(V); room to work in: overwritten, not read later
  tensor::TensorView lse_M;         ///< log of the sum of exponentials; overwritten, for backward
  tensor::TensorView loss_M;        ///< overwritten
  tensor::TensorView
      prediction_M;  ///< Int32: the greatest logit, the first of equals; overwritten; may be left out
  /// Overwritten: greatest logit, sum of the exponentials of the differences to it, the label's logit (0
  /// where it lies in another slice), and the greatest logit's word. lse_M, loss_M and prediction_M are not
  /// touched then.
  tensor::TensorView part_M4 = {};
};
void vocabulary_loss_forward(const tensor::Stream& stream, const VocabularyLossForward& args);

/// Combines what the slices of a divided vocabulary know of each position, in their order, to what
/// VocabularyLossForward gives for the whole. All ranks that do so with the same parts get the same bytes.
struct VocabularyParts {
  tensor::ConstTensorView part_PM4;  ///< of P slices, by their first words
  tensor::ConstTensorView label_M;
  tensor::TensorView lse_M;         ///< overwritten
  tensor::TensorView loss_M;        ///< overwritten
  tensor::TensorView prediction_M;  ///< overwritten; may be left out
};
void combine_vocabulary_parts(const tensor::Stream& stream, const VocabularyParts& args);

/// Computes the gradients of scale * (sum over positions of the loss). Without positions, an overwritten dw
/// is zero. Of a slice of the vocabulary dh_MD is the slice's share: the sum over slices is the gradient.
struct VocabularyLossBackward {
  tensor::ConstTensorView h_MD;
  tensor::ConstTensorView w_VD;
  tensor::ConstTensorView label_M;
  RowSlice words = {};  ///< of w_VD
  tensor::ConstTensorView lse_M;
  tensor::ConstTensorView scale_1;  ///< Float64
  tensor::TensorView logits_MW;     ///< as forward left them; overwritten by their gradient
  tensor::TensorView dh_MD;         ///< overwritten
  tensor::TensorView dw_VD;
  tensor::TensorView db_V;                  ///< added to
  Accumulate accumulate = Accumulate::Yes;  ///< whether dw_VD is added to
};
void vocabulary_loss_backward(const tensor::Stream& stream, const VocabularyLossBackward& args);

/// Scratch that either needs, on the CPU each thread.
using workspace::vocabulary_loss_scratch_bytes;
using workspace::vocabulary_stride;
using workspace::vocabulary_tiles;

}  // namespace plenum::kernels

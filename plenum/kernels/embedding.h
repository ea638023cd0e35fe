#pragma once

#include <cstdint>

#include "plenum/kernels/dropout.h"
#include "plenum/kernels/row_slice.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/rows.h"

namespace plenum::kernels {

// T rows, D width, V words, P positions, G segments. Ids are Int32; rows have the type of
// activations and tables that of weights, the rest and all gradients of parameters Float32. See
// docs/math/embedding.md.

/// Computes z = word[id] + position[p] + segment[g], y = dropout(layer_norm(z)), row by row.
struct EmbeddingForward {
  tensor::ConstTensorView id_T;  ///< Int32, in [0, V); of padding too
  tensor::ConstTensorView position_T;
  tensor::ConstTensorView segment_T;
  tensor::ConstTensorView word_VD;
  /// word[id] of every row, where it was looked up before: id_T and word_VD are left out then. May be z_TD.
  tensor::ConstTensorView looked_up_TD = {};
  tensor::ConstTensorView position_PD;
  tensor::ConstTensorView segment_GD;
  tensor::ConstTensorView gamma_D;
  tensor::ConstTensorView beta_D;
  float epsilon = 1e-12F;
  Dropout dropout;
  RowIdentities rows;
  tensor::TensorView z_TD;                 ///< overwritten, for backward
  tensor::TensorView y_TD;                 ///< overwritten
  tensor::TensorView mean_T;               ///< overwritten
  tensor::TensorView inverse_deviation_T;  ///< overwritten
};
void embedding_forward(const tensor::Stream& stream, const EmbeddingForward& args);

/// Rows grouped by the table entry they read: group i is row_R[start_G[i] ... start_G[i + 1] - 1], all with
/// entry entry_G[i]. Entries are different, so each row of a gradient table has one owner and one order of
/// summation. Padding rows are in no group. All Int32.
struct RowGroups {
  tensor::ConstTensorView entry_G;  ///< on the GPU -1 from where there are no more: its number is rounded up
  tensor::ConstTensorView start_G;  ///< one more than entries; where there are no more, the number of rows
  tensor::ConstTensorView row_R;

  /// None where the groups are left out.
  std::int64_t num_groups() const { return entry_G ? entry_G.num_elements() : 0; }
};

/// Computes dz from dy and adds it to the rows of the tables that each token read.
struct EmbeddingBackward {
  tensor::ConstTensorView dy_TD;
  tensor::ConstTensorView z_TD;
  tensor::ConstTensorView mean_T;
  tensor::ConstTensorView inverse_deviation_T;
  tensor::ConstTensorView gamma_D;
  Dropout dropout;
  RowIdentities rows;
  RowGroups by_word;    ///< entries are ids of the whole vocabulary; those outside the slice are passed over
  RowSlice words = {};  ///< of dword_VD
  RowGroups by_position;
  RowGroups by_segment;
  tensor::TensorView dz_TD;         ///< overwritten; may be dy_TD
  tensor::TensorView dword_VD;      ///< added to
  tensor::TensorView dposition_PD;  ///< added to
  tensor::TensorView dsegment_GD;   ///< added to
  tensor::TensorView dgamma_D;      ///< added to
  tensor::TensorView dbeta_D;       ///< added to
};
void embedding_backward(const tensor::Stream& stream, const EmbeddingBackward& args);

/// Scratch that either needs, on the CPU each thread.
using workspace::embedding_scratch_bytes;

}  // namespace plenum::kernels

#pragma once

#include "plenum/kernels/accumulate.h"
#include "plenum/kernels/row_slice.h"
#include "plenum/model/pass.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::model {

// Where ranks hold a model together (tensor parallelism), each computes with its slices. Rows between
// sublayers are the same on all of them, byte for byte, and so are the gradients of whatever is not divided.
// A map whose input is divided gives each rank a share of its output, and one whose output is divided a share
// of its input's gradient: these are summed over the ranks. docs/math/tensor_parallelism.md.

/// Overwrites each rank's share by the sum over all ranks, the same bytes on all; nothing where one rank
/// holds all.
void sum_over_ranks(const Pass& pass, const tensor::TensorView& share);

/// Fills the parts of the other ranks; each has written its own, part_PM4[its index].
void gather_over_ranks(const Pass& pass, const tensor::TensorView& part_PM4);

/// What is to stand in a sum over ranks once, as the bias of a map whose input is divided: the first rank's.
inline tensor::ConstTensorView once(const Pass& pass, const tensor::ConstTensorView& bias) {
  return pass.model.tensor_parallel.index == 0 ? bias : tensor::ConstTensorView();
}

/// Whether a rank's share of a gradient goes on top of what lies there, the gradient of the residual: it
/// does on the first, so that it is summed once.
inline kernels::Accumulate onto_residual(const Pass& pass) {
  return pass.model.tensor_parallel.index == 0 ? kernels::Accumulate::Yes : kernels::Accumulate::No;
}

/// The words that lie here.
inline kernels::RowSlice words_here(const Pass& pass) {
  const auto& slice = pass.model.embedding.words.slice;
  return slice ? kernels::RowSlice{.first = slice->begin, .whole = slice->whole} : kernels::RowSlice{};
}

}  // namespace plenum::model

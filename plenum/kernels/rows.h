#pragma once

#include "plenum/kernels/row_slice.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

// Rows have the type of activations. The index -1 stands for no row: nothing is read or added for it.

/// Copies the rows y[i] = x[index[i]], and zero where there is none, or where it does not lie in the slice.
struct GatherRowsForward {
  tensor::ConstTensorView x_TD;
  tensor::ConstTensorView index_M;  ///< Int32, in [-1, T), of the whole table where x_TD is a slice
  RowSlice slice = {};              ///< of x_TD
  tensor::TensorView y_MD;          ///< overwritten
};
void gather_rows_forward(const tensor::Stream& stream, const GatherRowsForward& args);

/// Adds dx[index[i]] += dy[i].
struct GatherRowsBackward {
  tensor::ConstTensorView dy_MD;
  tensor::ConstTensorView index_M;  ///< all different but -1
  tensor::TensorView dx_TD;         ///< added to
};
void gather_rows_backward(const tensor::Stream& stream, const GatherRowsBackward& args);

}  // namespace plenum::kernels

#pragma once

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

/// Copies the rows y[i] = x[index[i]].
struct GatherRowsForward {
  tensor::ConstTensorView x_TD;
  tensor::ConstTensorView index_M;  ///< Int32, in [0, T)
  tensor::TensorView y_MD;          ///< overwritten
};
void gather_rows_forward(const tensor::Stream& stream, const GatherRowsForward& args);

/// Adds dx[index[i]] += dy[i].
struct GatherRowsBackward {
  tensor::ConstTensorView dy_MD;
  tensor::ConstTensorView index_M;  ///< all different
  tensor::TensorView dx_TD;         ///< added to
};
void gather_rows_backward(const tensor::Stream& stream, const GatherRowsBackward& args);

}  // namespace plenum::kernels

#pragma once

#include "plenum/kernels/dropout.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

// T rows, D width, of the type of activations. Scratch: workspace::dropout_rows_scratch_bytes.

/// Computes y = dropout(x). Its gradient is the same function of the gradient: dx = dropout(dy).
struct DropoutRows {
  tensor::ConstTensorView x_TD;
  Dropout dropout;
  RowIdentities rows;       ///< given where dropout is on
  tensor::TensorView y_TD;  ///< overwritten; may be x_TD
};
void dropout_rows(const tensor::Stream& stream, const DropoutRows& args);

}  // namespace plenum::kernels

#pragma once

#include "plenum/kernels/accumulate.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/product.h"

namespace plenum::kernels {

// T rows, D input width, E output width. Everything is row-major; rows have the type of activations and
// weights that of weights, except the gradients of weights, which are Float32. No argument may overlap
// another. Every sum has one owner and an order that depends on shapes alone: the bytes do not depend on the
// number of threads. See docs/math/linear.md.

/// Computes y = x w^T + b. With a GELU behind it: mlp_gelu.h.
struct LinearForward {
  tensor::ConstTensorView x_TD;
  tensor::ConstTensorView w_ED;
  tensor::ConstTensorView b_E = {};  ///< may be left out
  tensor::TensorView y_TE;           ///< overwritten
};
void linear_forward(const tensor::Stream& stream, const LinearForward& args);

/// Computes dx (+)= dy w.
struct LinearBackwardInput {
  tensor::ConstTensorView dy_TE;
  tensor::ConstTensorView w_ED;
  tensor::TensorView dx_TD;
  Accumulate accumulate = Accumulate::No;  ///< whether dx_TD is added to
};
void linear_backward_input(const tensor::Stream& stream, const LinearBackwardInput& args);

/// Computes dw (+)= dy^T x and db += sum over rows of dy. Without rows, an overwritten dw is zero.
struct LinearBackwardWeight {
  tensor::ConstTensorView x_TD;
  tensor::ConstTensorView dy_TE;
  tensor::TensorView dw_ED;
  tensor::TensorView db_E = {};             ///< added to; may be left out
  Accumulate accumulate = Accumulate::Yes;  ///< whether dw_ED is added to
};
void linear_backward_weight(const tensor::Stream& stream, const LinearBackwardWeight& args);

/// Scratch that any of these needs, on the CPU each thread.
using workspace::linear_scratch_bytes;

}  // namespace plenum::kernels

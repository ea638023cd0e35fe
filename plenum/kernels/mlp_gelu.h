#pragma once

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/product.h"

namespace plenum::kernels {

// What of a multilayer perceptron y = gelu(u) w2^T + b2, u = x w1^T + b1, lies around its GELU. T rows, D
// width, F inner width. Everything is row-major; rows have the type of activations and weights that of
// weights, except the gradient of the bias, which is Float32. No argument may overlap another. On a GPU all
// but that gradient begin at multiples of 16 bytes, whatever the shape. Every sum has one owner and an order
// that depends on shapes alone. See docs/math/linear.md.

/// Computes h = gelu(u), and with `kept_TF` keeps what mlp_gelu_backward() wants to know of u.
struct MlpGeluForward {
  tensor::ConstTensorView x_TD;
  tensor::ConstTensorView w1_FD;
  tensor::ConstTensorView b1_F;
  tensor::TensorView h_TF;  ///< overwritten
  /// Overwritten; left out where no backward follows. On the CPU this is u itself. On a GPU it is u or
  /// gelu'(u), as T, D and F decide: nothing but mlp_gelu_backward() may read it there.
  tensor::TensorView kept_TF = {};
};
void mlp_gelu_forward(const tensor::Stream& stream, const MlpGeluForward& args);

/// Computes du = (dy w2) gelu'(u), element by element, and db1 += sum over rows of du.
struct MlpGeluBackward {
  tensor::ConstTensorView dy_TD;
  tensor::ConstTensorView w2_DF;
  tensor::ConstTensorView kept_TF;  ///< as forward has left it for the same T, D and F
  tensor::TensorView du_TF;         ///< overwritten
  tensor::TensorView db1_F;         ///< added to
};
void mlp_gelu_backward(const tensor::Stream& stream, const MlpGeluBackward& args);

/// Scratch that either needs, on the CPU each thread.
using workspace::mlp_gelu_scratch_bytes;

}  // namespace plenum::kernels

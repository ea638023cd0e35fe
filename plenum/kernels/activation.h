#pragma once

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

// Element by element; all arguments of one shape and of the type that activations have. See
// docs/math/activations.md.

/// Computes y = gelu(x) = x (1 + erf(x / sqrt 2)) / 2, the exact form. y may be x.
struct GeluForward {
  tensor::ConstTensorView x;
  tensor::TensorView y;  ///< overwritten
};
void gelu_forward(const tensor::Stream& stream, const GeluForward& args);

/// Computes dx = dy gelu'(x). dx may be dy.
struct GeluBackward {
  tensor::ConstTensorView x;
  tensor::ConstTensorView dy;
  tensor::TensorView dx;  ///< overwritten
};
void gelu_backward(const tensor::Stream& stream, const GeluBackward& args);

/// Computes y = tanh(x). y may be x.
struct TanhForward {
  tensor::ConstTensorView x;
  tensor::TensorView y;  ///< overwritten
};
void tanh_forward(const tensor::Stream& stream, const TanhForward& args);

/// Computes dx = dy (1 - y^2). dx may be dy.
struct TanhBackward {
  tensor::ConstTensorView y;
  tensor::ConstTensorView dy;
  tensor::TensorView dx;  ///< overwritten
};
void tanh_backward(const tensor::Stream& stream, const TanhBackward& args);

}  // namespace plenum::kernels

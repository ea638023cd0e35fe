#pragma once

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels::cuda {

/// Computes x *= gelu'(u), element by element, and adds the sums of x's columns, before they are rounded, to
/// `total`. Works in scratch as add_sum_of_rows() does.
void multiply_gelu_derivative(const tensor::Stream& stream, const tensor::ConstTensorView& u,
                              const tensor::TensorView& x, float* total);

}  // namespace plenum::kernels::cuda

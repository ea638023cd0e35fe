#pragma once

#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"

namespace plenum::model {

// The linear map with which heads begin that have a transform. M labels, D width.

/// Computes u = x W + b.
void head_dense_forward(const Pass& pass, const HeadWeights& weights, const tensor::ConstTensorView& x_MD,
                        const tensor::TensorView& u_MD);

/// Adds to the gradients of weight and bias and overwrites dx_MD. With Accumulate::No it overwrites that of
/// the weight.
void head_dense_backward(const Pass& pass, const HeadWeights& weights, const HeadGradients& gradients,
                         const tensor::ConstTensorView& x_MD, const tensor::ConstTensorView& du_MD,
                         const tensor::TensorView& dx_MD);

}  // namespace plenum::model

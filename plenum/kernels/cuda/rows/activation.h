#pragma once

#include "plenum/kernels/activation.h"

namespace plenum::kernels::cuda {

void gelu_forward(const tensor::Stream& stream, const GeluForward& args);
void gelu_backward(const tensor::Stream& stream, const GeluBackward& args);
void tanh_forward(const tensor::Stream& stream, const TanhForward& args);
void tanh_backward(const tensor::Stream& stream, const TanhBackward& args);

}  // namespace plenum::kernels::cuda

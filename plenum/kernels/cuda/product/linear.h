#pragma once

#include "plenum/kernels/linear.h"

namespace plenum::kernels::cuda {

void linear_forward(const tensor::Stream& stream, const LinearForward& args);
void linear_backward_input(const tensor::Stream& stream, const LinearBackwardInput& args);
void linear_backward_weight(const tensor::Stream& stream, const LinearBackwardWeight& args);

}  // namespace plenum::kernels::cuda

#pragma once

#include "plenum/kernels/layer_norm.h"

namespace plenum::kernels::cuda {

void layer_norm_forward(const tensor::Stream& stream, const LayerNormForward& args);
void layer_norm_backward(const tensor::Stream& stream, const LayerNormBackward& args);

}  // namespace plenum::kernels::cuda

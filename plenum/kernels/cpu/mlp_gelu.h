#pragma once

#include "plenum/kernels/mlp_gelu.h"

namespace plenum::kernels::cpu {

void mlp_gelu_forward(const tensor::Stream& stream, const MlpGeluForward& args);
void mlp_gelu_backward(const tensor::Stream& stream, const MlpGeluBackward& args);

}  // namespace plenum::kernels::cpu

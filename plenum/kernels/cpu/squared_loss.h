#pragma once

#include "plenum/kernels/squared_loss.h"

namespace plenum::kernels::cpu {

void squared_loss_forward(const tensor::Stream& stream, const SquaredLossForward& args);
void squared_loss_backward(const tensor::Stream& stream, const SquaredLossBackward& args);

}  // namespace plenum::kernels::cpu

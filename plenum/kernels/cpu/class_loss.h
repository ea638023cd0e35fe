#pragma once

#include "plenum/kernels/class_loss.h"

namespace plenum::kernels::cpu {

void class_loss_forward(const tensor::Stream& stream, const ClassLossForward& args);
void class_loss_backward(const tensor::Stream& stream, const ClassLossBackward& args);

}  // namespace plenum::kernels::cpu

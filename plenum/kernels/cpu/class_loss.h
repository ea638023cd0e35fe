#pragma once

#include "plenum/kernels/class_loss.h"

namespace plenum::kernels::cpu {

void class_loss_forward(const ClassLossForward& args);
void class_loss_backward(const ClassLossBackward& args);

}  // namespace plenum::kernels::cpu

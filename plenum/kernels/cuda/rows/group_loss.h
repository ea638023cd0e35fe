#pragma once

#include "plenum/kernels/group_loss.h"

namespace plenum::kernels::cuda {

void group_loss_forward(const tensor::Stream& stream, const GroupLossForward& args);
void group_loss_backward(const tensor::Stream& stream, const GroupLossBackward& args);

}  // namespace plenum::kernels::cuda

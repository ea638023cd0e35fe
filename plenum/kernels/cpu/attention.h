#pragma once

#include "plenum/kernels/attention.h"

namespace plenum::kernels::cpu {

void attention_forward(const tensor::Stream& stream, const AttentionForward& args);
void attention_backward(const tensor::Stream& stream, const AttentionBackward& args);

}  // namespace plenum::kernels::cpu

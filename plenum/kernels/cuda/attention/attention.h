#pragma once

#include "plenum/kernels/attention.h"

namespace plenum::kernels::cuda {

void attention_forward(const tensor::Stream& stream, const AttentionForward& args);
void attention_backward(const tensor::Stream& stream, const AttentionBackward& args);
std::size_t attention_scratch_bytes(const AttentionSize& size);
std::size_t attention_keep_bytes(const AttentionSize& size);

}  // namespace plenum::kernels::cuda

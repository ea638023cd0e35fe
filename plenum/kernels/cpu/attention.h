#pragma once

#include "plenum/kernels/attention.h"

namespace plenum::kernels::cpu {

void attention_forward(const tensor::Stream& stream, const AttentionForward& args);
void attention_backward(const tensor::Stream& stream, const AttentionBackward& args);
std::size_t attention_scratch_bytes(std::int64_t max_length, std::int64_t head_width);

}  // namespace plenum::kernels::cpu

#pragma once

#include "plenum/kernels/optimizer_step.h"

namespace plenum::kernels::cpu {

double sum_of_squares(const tensor::Stream& stream, std::span<const float> values_N);
void adam_step(const tensor::Stream& stream, const AdamStep& args);
void lamb_step(const tensor::Stream& stream, const AdamStep& args);

}  // namespace plenum::kernels::cpu

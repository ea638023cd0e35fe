#pragma once

#include "plenum/kernels/optimizer_step.h"

namespace plenum::kernels::cuda {

void decide_step(const tensor::Stream& stream, const StepDecision& args);
void adam_step(const tensor::Stream& stream, const AdamStep& args);
void lamb_step(const tensor::Stream& stream, const AdamStep& args);
std::size_t optimizer_scratch_bytes(std::int64_t num_elements, std::int64_t num_ranges);

}  // namespace plenum::kernels::cuda

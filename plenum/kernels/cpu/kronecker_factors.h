#pragma once

#include <span>

#include "plenum/kernels/kronecker_factors.h"

namespace plenum::kernels::cpu {

void damp_factors(const tensor::Stream& stream, std::span<const DampFactors> maps);
void take_inverse(const tensor::Stream& stream, std::span<const TakeInverse> maps);
void return_inverse(const tensor::Stream& stream, std::span<const ReturnInverse> maps);
void fold_factors(const tensor::Stream& stream, std::span<const FoldFactors> maps);

}  // namespace plenum::kernels::cpu

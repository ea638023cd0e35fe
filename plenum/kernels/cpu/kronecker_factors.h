#pragma once

#include "plenum/kernels/kronecker_factors.h"

namespace plenum::kernels::cpu {

void damp_factors(const tensor::Stream& stream, const DampFactors& args);
void take_inverse(const tensor::Stream& stream, const TakeInverse& args);
void return_inverse(const tensor::Stream& stream, const ReturnInverse& args);
void fold_factors(const tensor::Stream& stream, const FoldFactors& args);

}  // namespace plenum::kernels::cpu

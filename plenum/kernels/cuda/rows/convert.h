#pragma once

#include "plenum/kernels/convert.h"

namespace plenum::kernels::cuda {

void round_to_compute(const tensor::Stream& stream, const RoundToCompute& args);
void widen_from_compute(const tensor::Stream& stream, const WidenFromCompute& args);

}  // namespace plenum::kernels::cuda

#pragma once

#include "plenum/kernels/zero_all.h"

namespace plenum::kernels::cuda {

void zero_all(const tensor::Stream& stream, std::span<const tensor::TensorView> tensors);

}  // namespace plenum::kernels::cuda

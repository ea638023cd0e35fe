#pragma once

#include "plenum/kernels/orthonormalise.h"

namespace plenum::kernels::cuda {

void orthonormalise(const tensor::Stream& stream, const Orthonormalise& args);

}  // namespace plenum::kernels::cuda

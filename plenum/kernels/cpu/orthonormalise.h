#pragma once

#include "plenum/kernels/orthonormalise.h"

namespace plenum::kernels::cpu {

void orthonormalise(const tensor::Stream& stream, const Orthonormalise& args);

}  // namespace plenum::kernels::cpu

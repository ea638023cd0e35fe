#pragma once

#include "plenum/kernels/precondition.h"

namespace plenum::kernels::cuda {

void precondition(const tensor::Stream& stream, const Precondition& args);

}  // namespace plenum::kernels::cuda

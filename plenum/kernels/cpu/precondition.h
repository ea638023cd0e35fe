#pragma once

#include "plenum/kernels/precondition.h"

namespace plenum::kernels::cpu {

void precondition(const tensor::Stream& stream, const Precondition& args);

}  // namespace plenum::kernels::cpu

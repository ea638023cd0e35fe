#pragma once

#include "plenum/kernels/newton_schulz.h"

namespace plenum::kernels::cpu {

void newton_schulz(const tensor::Stream& stream, const NewtonSchulz& args);

}  // namespace plenum::kernels::cpu

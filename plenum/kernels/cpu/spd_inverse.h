#pragma once

#include "plenum/kernels/spd_inverse.h"

namespace plenum::kernels::cpu {

void invert_spd(const tensor::Stream& stream, const InvertSpd& args);

}  // namespace plenum::kernels::cpu

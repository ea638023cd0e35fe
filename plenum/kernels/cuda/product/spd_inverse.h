#pragma once

#include "plenum/kernels/spd_inverse.h"

namespace plenum::kernels::cuda {

void invert_spd(const tensor::Stream& stream, const InvertSpd& args);

}  // namespace plenum::kernels::cuda

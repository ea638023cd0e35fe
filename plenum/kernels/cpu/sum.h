#pragma once

#include "plenum/kernels/sum.h"

namespace plenum::kernels::cpu {

void add_sum(const tensor::Stream& stream, const AddSum& args);

}  // namespace plenum::kernels::cpu

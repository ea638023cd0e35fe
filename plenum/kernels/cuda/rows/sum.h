#pragma once

#include "plenum/kernels/sum.h"

namespace plenum::kernels::cuda {

void add_sum(const tensor::Stream& stream, const AddSum& args);

}  // namespace plenum::kernels::cuda

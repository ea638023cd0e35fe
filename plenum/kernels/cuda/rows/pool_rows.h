#pragma once

#include "plenum/kernels/pool_rows.h"

namespace plenum::kernels::cuda {

void pool_rows(const tensor::Stream& stream, const PoolRows& args);

}  // namespace plenum::kernels::cuda

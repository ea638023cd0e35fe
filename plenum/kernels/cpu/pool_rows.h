#pragma once

#include "plenum/kernels/pool_rows.h"

namespace plenum::kernels::cpu {

void pool_rows(const tensor::Stream& stream, const PoolRows& args);

}  // namespace plenum::kernels::cpu

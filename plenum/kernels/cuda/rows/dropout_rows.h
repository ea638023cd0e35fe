#pragma once

#include "plenum/kernels/dropout_rows.h"

namespace plenum::kernels::cuda {

void dropout_rows(const tensor::Stream& stream, const DropoutRows& args);

}  // namespace plenum::kernels::cuda

#pragma once

#include "plenum/kernels/rows.h"

namespace plenum::kernels::cuda {

void gather_rows_forward(const tensor::Stream& stream, const GatherRowsForward& args);
void gather_rows_backward(const tensor::Stream& stream, const GatherRowsBackward& args);

}  // namespace plenum::kernels::cuda

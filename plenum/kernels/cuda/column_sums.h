#pragma once

#include "plenum/kernels/column_sums.h"

namespace plenum::kernels::cuda {

/// Adds the sums over the rows of x, a bf16 matrix, to `total`, in fp32 and in an order that depends on the
/// shape alone. Works in scratch: 1 KiB for every column is enough.
void add_column_sums(const tensor::Stream& stream, const tensor::ConstTensorView& x, float* total);

void add_column_sums(const tensor::Stream& stream, const AddColumnSums& args);

}  // namespace plenum::kernels::cuda

#pragma once

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels::cuda {

/// Adds the sums over the rows of x, a bf16 matrix, to `total`, in fp32 and in an order that depends on the
/// shape alone. Works in scratch: 1 KiB for every column is enough.
void add_column_sums(const tensor::Stream& stream, const tensor::ConstTensorView& x, float* total);

}  // namespace plenum::kernels::cuda

#pragma once

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels::cuda {

/// sums += sum over rows of x [rows, columns], of bf16 in fp32. Blocks of rows are summed on their own and
/// added in order, so the bytes depend on the shape alone. Works in scratch: as much as
/// matmul_scratch_bytes().
void add_column_sums(const tensor::Stream& stream, const tensor::ConstTensorView& x, float* sums);

}  // namespace plenum::kernels::cuda

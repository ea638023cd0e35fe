#pragma once

#include <cstdint>
#include <span>

#include "plenum/kernels/column_sums.h"

namespace plenum::kernels::cuda {

/// Adds the sums over the rows of x, a bf16 matrix, to `total`, in fp32 and in an order that depends on the
/// shape alone. Works in scratch: 1 KiB for every column is enough.
void add_sum_of_rows(const tensor::Stream& stream, const tensor::ConstTensorView& x, float* total);

void add_column_sums(const tensor::Stream& stream, const AddColumnSums& args);

/// Adds sums over blocks of rows, [num_blocks, columns], to `totals`: each takes the next `width` columns.
void add_block_sums(const tensor::Stream& stream, const float* sums, std::int64_t num_blocks, int width,
                    std::span<float* const> totals);
/// The same for one.
inline void add_block_sums(const tensor::Stream& stream, const float* sums, std::int64_t num_blocks,
                           int num_columns, float* total) {
  add_block_sums(stream, sums, num_blocks, num_columns, std::span(&total, 1));
}

}  // namespace plenum::kernels::cuda

#pragma once

#include <cstdint>

#include "plenum/kernels/column_sums.h"

namespace plenum::kernels::cpu {

/// Neighbouring columns of a matrix.
struct MatrixColumns {
  const float* data = nullptr;
  std::int64_t num_rows = 0;
  std::int64_t num_columns = 0;
  std::int64_t stride = 0;  ///< floats from a row to the next
};

inline MatrixColumns rows_of(const tensor::ConstTensorView& x) {
  return {.data = x.data<float>(), .num_rows = x.size(0), .num_columns = x.size(1), .stride = x.size(1)};
}

/// Adds the sums over rows to `sums`: each column has one owner.
void add_sum_of_rows(const tensor::Stream& stream, const MatrixColumns& x, float* sums);

void add_column_sums(const tensor::Stream& stream, const AddColumnSums& args);

}  // namespace plenum::kernels::cpu

#pragma once

#include <cstdint>
#include <span>

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/workspace/kronecker.h"

namespace plenum::kernels {

/// Rows [begin, end).
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// Adds the second moment of some rows of a matrix, or of a part of its columns: C += X^T X, where X has the
/// columns [first_column, first_column + D) of the rows in `rows`. Products of bf16 are summed in fp32. The
/// order of every sum depends on the rows alone. See docs/math/kfac.md.
struct AddSecondMoment {
  /// Of the type of activations. Rows outside `rows` may come back as zeros: they are padding.
  tensor::TensorView x_TW;
  std::int64_t first_column = 0;
  std::span<const RowRange> rows;  ///< in increasing order, without overlap
  /// Float32. The lower half, with the diagonal, is added to; above it anything may be left.
  tensor::TensorView moment_DD;
};
void add_second_moment(const tensor::Stream& stream, const AddSecondMoment& args);

/// Scratch that this needs, on the CPU each thread.
using workspace::kronecker_scratch_bytes;

}  // namespace plenum::kernels

#pragma once

#include <cstdint>

#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

/// Whether a vector is divided by its length, so that products of two are cosines.
enum class UnitLength : std::uint8_t { No, Yes };

/// A vector shorter than this is divided by this: one of zeros stays what it is.
inline constexpr float kLeastPooledLength = 1e-12F;

// R rows of width D in S groups of neighbours, such as the tokens of sentences.

/// Computes the mean of the rows of each group, y[s] = (sum of x[r] over group[r] = s) / their number, in
/// single precision from the first row to the last. On request divided by max(|y[s]|, 1e-12). No scratch.
struct PoolRows {
  tensor::ConstTensorView x_RD;  ///< of the type of activations
  /// Int32: ascending, every number below S at least once. Rows at the end may be of no group: -1.
  tensor::ConstTensorView group_R;
  UnitLength unit_length = UnitLength::No;
  tensor::TensorView y_SD;  ///< Float32; overwritten
};
void pool_rows(const tensor::Stream& stream, const PoolRows& args);

}  // namespace plenum::kernels

#pragma once

#include <cstdint>

#include "plenum/kernels/accumulate.h"
#include "plenum/tensor/stream.h"
#include "plenum/workspace/product.h"

namespace plenum::kernels::cuda {

// Products of fp32 matrices. Everything is row-major; strides count elements between rows.

/// How much of fp32 factors a product reads.
enum class FloatPrecision : std::uint8_t {
  Full,    ///< all of it, on the general cores: bases that were multiplied in TF32 are not orthonormal
  Reduced  ///< ten bits of each mantissa (TF32), on tensor cores; sums are in fp32
};

/// A matrix that is read as it lies, or as its transpose.
struct FloatOperand {
  const float* data = nullptr;
  std::int64_t stride = 0;        ///< between rows as they lie in memory
  bool is_transposed = false;     ///< whether the factor is the transpose of what lies there
  std::int64_t batch_stride = 0;  ///< from one matrix to the next, where several products are one call
};

/// C [m, n] = (C +) alpha A [m, k] B [k, n]. All sizes are positive.
struct FloatMatmul {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  FloatOperand a = {};
  FloatOperand b = {};
  float* c = nullptr;  ///< overlaps neither factor
  std::int64_t c_stride = 0;
  Accumulate accumulate = Accumulate::No;
  float alpha = 1;
  FloatPrecision precision = FloatPrecision::Full;
  /// Products of the same sizes side by side, whose matrices lie at equal distances.
  std::int64_t num_products = 1;
  std::int64_t c_batch_stride = 0;
};

/// Puts the product into the stream's queue, by the library's first choice among the algorithms of a fixed
/// order of summation that starts there. Needs workspace::kMatmulWorkspaceBytes of scratch.
void float_matmul(const tensor::Stream& stream, const FloatMatmul& args);

}  // namespace plenum::kernels::cuda

#pragma once

#include <cstdint>

#include "plenum/kernels/accumulate.h"
#include "plenum/tensor/stream.h"
#include "plenum/workspace/product.h"

namespace plenum::kernels::cuda {

// Products of fp32 matrices in full fp32, never TF32: inverses lose what their smallest eigenvalues say
// otherwise. Everything is row-major; strides count elements between rows.

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
  /// Products of the same sizes side by side, whose matrices lie at equal distances.
  std::int64_t num_products = 1;
  std::int64_t c_batch_stride = 0;
};

/// Puts the product into the stream's queue, by the library's first choice among the algorithms of a fixed
/// order of summation. Needs workspace::kMatmulWorkspaceBytes of scratch.
void float_matmul(const tensor::Stream& stream, const FloatMatmul& args);

}  // namespace plenum::kernels::cuda

#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/kernels/accumulate.h"
#include "plenum/tensor/bfloat16.h"
#include "plenum/tensor/dtype.h"
#include "plenum/tensor/stream.h"
#include "plenum/workspace/product.h"

namespace plenum::kernels::cuda {

// Products of bf16 matrices with sums in fp32. Everything is row-major; strides count elements between rows.
// See docs/decisions/cuda.md.

/// A matrix that is read as it lies, or as its transpose.
struct MatmulOperand {
  const tensor::BFloat16* data = nullptr;
  std::int64_t stride = 0;        ///< between rows as they lie in memory
  bool is_transposed = false;     ///< whether the factor is the transpose of what lies there
  std::int64_t batch_stride = 0;  ///< from one matrix to the next, where several products are one call
};

/// C [m, n] = (C +) A [m, k] B [k, n]. Any size may be 0; with k = 0 the product is zero.
struct Matmul {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  MatmulOperand a = {};
  MatmulOperand b = {};
  void* c = nullptr;                                ///< overlaps neither factor
  tensor::DType c_dtype = tensor::DType::BFloat16;  ///< or Float32
  std::int64_t c_stride = 0;
  Accumulate accumulate = Accumulate::No;
  /// [n], added to every row before it is rounded; only where a C of bf16 is overwritten.
  const tensor::BFloat16* bias = nullptr;
  int num_multiprocessors = 0;  ///< of a part of the GPU on which it is to run; 0: of the whole
  /// Products of the same sizes side by side, whose matrices lie at equal distances. No algorithms are
  /// measured for more than one.
  std::int64_t num_products = 1;
  std::int64_t c_batch_stride = 0;
};

/// Puts the product into the stream's queue, whose multiprocessors it is made for. The first product of each
/// kind measures the algorithms that there are, and waits for that, unless the stream was given a choice or
/// is being captured into a graph. The same products in the same order give the same bytes, whatever was
/// measured.
void matmul(const tensor::Stream& stream, const Matmul& args);

using workspace::kMatmulTrialBytes;
using workspace::kMatmulWorkspaceBytes;
using workspace::matmul_scratch_bytes;

}  // namespace plenum::kernels::cuda

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plenum/kernels/accumulate.h"
#include "plenum/tensor/stream.h"
#include "plenum/workspace/product.h"

namespace plenum::kernels::cpu {

// Products of single-precision matrices. Everything is row-major; strides count floats between rows.
// See docs/decisions/gemm.md.

/// A matrix that is read as it lies, or as its transpose.
struct GemmOperand {
  const float* data = nullptr;
  std::int64_t stride = 0;     ///< between rows as they lie in memory
  bool is_transposed = false;  ///< whether the factor is the transpose of what lies there
};

/// What happens to the finished elements of C while they are in the cache, in this order. All matrices are
/// [m, n] with C's stride.
struct GemmEpilogue {
  const float* bias = nullptr;        ///< [n], added to every row
  const float* gelu_input = nullptr;  ///< C is multiplied by gelu'(gelu_input)
  float* gelu = nullptr;              ///< receives gelu(C); may be C
};

/// C [m, n] = (C +) alpha A [m, k] B [k, n]. Any size may be 0; with k = 0 the product is zero.
struct Gemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  GemmOperand a = {};
  GemmOperand b = {};
  float* c = nullptr;  ///< overlaps neither factor
  std::int64_t c_stride = 0;
  Accumulate accumulate = Accumulate::No;
  float alpha = 1;
  GemmEpilogue epilogue = {};
};

/// Computes it on this thread. The order of every sum depends on k alone. `scratch` is aligned to cache
/// lines, as a stream's is.
void gemm(const Gemm& args, std::span<std::byte> scratch);

/// Computes it on the stream's threads, in panels of C. The same bytes as gemm().
void parallel_gemm(const tensor::Stream& stream, const Gemm& args);

/// Scratch that gemm() needs, and every thread of parallel_gemm().
using workspace::gemm_scratch_bytes;

}  // namespace plenum::kernels::cpu

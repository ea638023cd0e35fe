#include "bench/gpu/profile/product_calls.h"

#include <utility>

#include <cublasLt.h>

namespace plenum::bench {
namespace {

/// What is noted, and whether it is. The wrapped function has no argument of ours.
struct Notes {
  bool is_on = false;
  std::vector<ProductCall> calls;
};
Notes& notes() {
  static Notes the_ones;
  return the_ones;
}

bool is_transposed(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t which) {
  cublasOperation_t operation = CUBLAS_OP_N;
  cublasLtMatmulDescGetAttribute(product, which, &operation, sizeof(operation), nullptr);
  return operation == CUBLAS_OP_T;
}

std::int64_t size(cublasLtMatrixLayout_t matrix, cublasLtMatrixLayoutAttribute_t which) {
  std::uint64_t size = 0;
  cublasLtMatrixLayoutGetAttribute(matrix, which, &size, sizeof(size), nullptr);
  return static_cast<std::int64_t>(size);
}

/// The library sees row-major matrices as their transposes, with the factors in the other order: its m is our
/// n. Forward is x W^T, the gradient of the input dy W, that of the weight dy^T x.
ProductCall describe(cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t first,
                     cublasLtMatrixLayout_t result) {
  const bool is_first_transposed = is_transposed(product, CUBLASLT_MATMUL_DESC_TRANSA);
  const std::int64_t n = size(result, CUBLASLT_MATRIX_LAYOUT_ROWS);
  const std::int64_t m = size(result, CUBLASLT_MATRIX_LAYOUT_COLS);
  const std::int64_t k =
      size(first, is_first_transposed ? CUBLASLT_MATRIX_LAYOUT_ROWS : CUBLASLT_MATRIX_LAYOUT_COLS);
  using Part = ProductCall::Part;
  if (is_transposed(product, CUBLASLT_MATMUL_DESC_TRANSB)) {
    return {.part = Part::WeightGradient, .tokens = k, .inputs = n, .outputs = m};
  }
  if (is_first_transposed) return {.part = Part::Forward, .tokens = m, .inputs = k, .outputs = n};
  return {.part = Part::InputGradient, .tokens = m, .inputs = n, .outputs = k};
}

}  // namespace

void begin_product_calls() {
  notes() = {.is_on = true, .calls = {}};
}

std::vector<ProductCall> end_product_calls() {
  return std::exchange(notes(), {}).calls;
}

}  // namespace plenum::bench

// The linker's names for a function and what stands before it. NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
decltype(cublasLtMatmul) __real_cublasLtMatmul;

cublasStatus_t __wrap_cublasLtMatmul(cublasLtHandle_t library, cublasLtMatmulDesc_t product,
                                     const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                                     const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                                     const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                                     cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm,
                                     void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  const cublasStatus_t status =
      __real_cublasLtMatmul(library, product, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
                            algorithm, workspace, workspace_bytes, stream);
  auto& notes = plenum::bench::notes();
  if (notes.is_on && status == CUBLAS_STATUS_SUCCESS) {
    notes.calls.push_back(plenum::bench::describe(product, a_layout, d_layout));
  }
  return status;
}
}
// NOLINTEND(bugprone-reserved-identifier)

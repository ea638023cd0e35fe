#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <cublasLt.h>

#include "plenum/base/check.h"
#include "plenum/kernels/cuda/product/matmul.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {

/// Throws if a call of cuBLASLt failed: what CUDA has to say of work before it, a GPU that broke down above
/// all, else InternalError. `what` says what was being done.
inline void check_lt(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  tensor::check_cuda_before(what);
  base::check(false, "cuBLASLt failed to {}: {}", what, cublasLtGetStatusString(status));
}

/// A product as cuBLASLt describes it. The library's matrices are column-major: they are the transposes of
/// ours, so the factors change places and nothing is copied.
class LtMatmul {
 public:
  explicit LtMatmul(const Matmul& args);

  /// What the choice of an algorithm depends on. Sizes are rounded up to one of eight per power of two, so
  /// that numbers of rows that differ a little share a choice.
  std::string kind() const;

  /// Algorithms that can compute it in a workspace of that size, at most `count`, in the order in which the
  /// library expects them to be fast. Only those of a fixed order of summation. None where the library does
  /// not know the problem.
  std::vector<cublasLtMatmulAlgo_t> candidates(cublasLtHandle_t library, std::size_t workspace_bytes,
                                               int count) const;

  /// Whether an algorithm that was proposed for another product can compute this one in such a workspace.
  bool suits(cublasLtHandle_t library, const cublasLtMatmulAlgo_t& algorithm,
             std::size_t workspace_bytes) const;

  /// Puts it into the queue, with the result at `result`. Returns false, with nothing done, if the algorithm
  /// cannot compute it.
  bool run(cublasLtHandle_t library, const cublasLtMatmulAlgo_t& algorithm, void* result,
           std::span<std::byte> workspace, CUstream_st* queue) const;

 private:
  Matmul args_;
  std::uint32_t alignment_ = 0;  ///< of everything that is read or written, in bytes
  cublasLtMatmulDescOpaque_t product_{};
  cublasLtMatrixLayoutOpaque_t first_{};   ///< ours: B
  cublasLtMatrixLayoutOpaque_t second_{};  ///< ours: A
  cublasLtMatrixLayoutOpaque_t third_{};   ///< ours: C
};

}  // namespace plenum::kernels::cuda

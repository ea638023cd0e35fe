#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <cublasLt.h>

#include "plenum/kernels/cuda/product/lt_matmul.h"
#include "plenum/tensor/stream.h"

namespace plenum::kernels::cuda {

/// Runs a product with several algorithms to find the fastest. It writes only what the product overwrites
/// anyway; a product that accumulates writes to scratch instead. Waits for the GPU.
class MatmulTrial {
 public:
  /// Borrows the arguments. `workspace` is the library's, `room` other scratch of kMatmulTrialBytes or more.
  MatmulTrial(const tensor::CudaStream& queue, cublasLtHandle_t library, const Matmul& args,
              std::span<std::byte> workspace, std::span<std::byte> room);

  /// Whether there is memory that it may write to, and whether what is written is enough to compare; never
  /// for several products at once.
  bool is_possible() const;

  /// The fastest of those that give the bytes of the first that runs; nothing if none runs.
  std::optional<cublasLtMatmulAlgo_t> fastest(std::span<const cublasLtMatmulAlgo_t> candidates) const;

 private:
  bool run(const cublasLtMatmulAlgo_t& algorithm) const;
  std::vector<cublasLtMatmulAlgo_t> alike(std::span<const cublasLtMatmulAlgo_t> candidates) const;
  void add_checksum_of_result(std::uint64_t* sum) const;

  const tensor::CudaStream& queue_;
  cublasLtHandle_t library_;
  Matmul args_;
  LtMatmul product_;
  std::span<std::byte> workspace_;
  std::span<std::byte> room_;
  void* result_ = nullptr;
};

}  // namespace plenum::kernels::cuda

#pragma once

#include <algorithm>

#include "plenum/kernels/cuda/product/matmul.h"
#include "plenum/kernels/mlp_gelu.h"

namespace plenum::kernels::cuda {

void mlp_gelu_forward(const tensor::Stream& stream, const MlpGeluForward& args);
void mlp_gelu_backward(const tensor::Stream& stream, const MlpGeluBackward& args);

/// How many rows of du a kernel for Hopper sums before it writes the sums.
inline constexpr std::int64_t kRowsOfGeluSums = 128;
inline std::int64_t num_gelu_block_sums(std::int64_t num_rows) {
  return (num_rows + kRowsOfGeluSums - 1) / kRowsOfGeluSums;
}
inline std::size_t gelu_block_sums_bytes(std::int64_t num_rows, std::int64_t mlp_width) {
  return static_cast<std::size_t>(num_gelu_block_sums(num_rows) * mlp_width) * sizeof(float);
}

inline std::size_t mlp_gelu_scratch_bytes(std::int64_t num_rows, std::int64_t mlp_width) {
  return std::max(matmul_scratch_bytes(), gelu_block_sums_bytes(num_rows, mlp_width));
}

}  // namespace plenum::kernels::cuda

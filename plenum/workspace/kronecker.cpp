#include "plenum/workspace/kronecker.h"

#include <algorithm>

#include "plenum/workspace/optimizer.h"
#include "plenum/workspace/product.h"

namespace plenum::workspace {

std::size_t kronecker_scratch_bytes(tensor::Device device, std::int64_t num_weights) {
  if (device == tensor::Device::Cpu) return gemm_scratch_bytes();
  // Of two tensors the squares of every block.
  const auto squares = 2 * static_cast<std::size_t>(num_square_blocks(num_weights)) * sizeof(double);
  const auto block = static_cast<std::size_t>(kInversePanel * kInversePanel) * sizeof(float);
  return std::max(matmul_scratch_bytes(block), squares);
}

}  // namespace plenum::workspace

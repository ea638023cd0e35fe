#include "plenum/workspace/kronecker.h"

#include <algorithm>

#include "plenum/workspace/product.h"

namespace plenum::workspace {

std::size_t kronecker_scratch_bytes(tensor::Device device) {
  return device == tensor::Device::Cpu ? gemm_scratch_bytes() : matmul_scratch_bytes();
}

std::int64_t inverse_room_elements(tensor::Device device, std::span<const std::int64_t> sizes) {
  const bool is_cpu = device == tensor::Device::Cpu;
  const std::size_t num_at_once = is_cpu ? 1 : std::size_t{kInversesAtOnce};
  std::int64_t most = 0;
  for (std::size_t begin = 0; begin < sizes.size(); begin += num_at_once) {
    std::int64_t elements = 0;
    for (const std::int64_t size : sizes.subspan(begin, std::min(num_at_once, sizes.size() - begin))) {
      // A panel and its product; on the GPU the inverted block, too.
      elements += 2 * size * kInversePanel + (is_cpu ? 0 : kInversePanel * kInversePanel);
    }
    most = std::max(most, elements);
  }
  return most;
}

std::int64_t precondition_room_elements(tensor::Device device, std::int64_t num_weights,
                                        std::int64_t num_gradients) {
  if (device == tensor::Device::Cpu) return num_gradients > 0 ? 2 * num_weights : 0;
  // Of each both products, and of every block two sums in double precision.
  constexpr std::int64_t kElementsOfSums = 2 * sizeof(double) / sizeof(float);
  return std::min(num_gradients, num_preconditioned_at_once(num_weights)) *
         (2 * num_weights + kElementsOfSums * num_preconditioned_blocks(num_weights));
}

}  // namespace plenum::workspace

#pragma once

#include <cstdint>

namespace plenum::kernels::cuda {

/// Where instructions that take an address within shared memory find it.
__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace plenum::kernels::cuda

#pragma once

#include <cstdint>

#include <cuda_bf16.h>

namespace plenum::kernels::cuda {

/// Two bf16 as a word, rounded to the nearest, the first in the lower half.
__device__ inline std::uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(pair);
}

__device__ inline float2 unpack(std::uint32_t word) {
  return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(word));
}

}  // namespace plenum::kernels::cuda

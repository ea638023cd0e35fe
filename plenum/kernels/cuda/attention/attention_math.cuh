#pragma once

#include <cstdint>

#include "plenum/kernels/cuda/device/bfloat16_pair.cuh"

namespace plenum::kernels::cuda {

// What all forms of attention compute with.

/// 2^x to about 2 ulp; results that are no normal numbers become zero.
__device__ inline float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// The sum of products of eight bf16.
__device__ inline float dot_chunks(const uint4& x, const uint4& y) {
  const std::uint32_t xs[4] = {x.x, x.y, x.z, x.w};
  const std::uint32_t ys[4] = {y.x, y.y, y.z, y.w};
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 a = unpack(xs[i]);
    const float2 b = unpack(ys[i]);
    sum = fmaf(a.x, b.x, fmaf(a.y, b.y, sum));
  }
  return sum;
}

}  // namespace plenum::kernels::cuda

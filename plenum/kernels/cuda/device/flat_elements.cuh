#pragma once

#include <cstdint>

#include <cuda_bf16.h>

namespace plenum::kernels::cuda {

/// Elements of a flat Float32 buffer that a thread loads at once: 16 bytes.
inline constexpr int kFlatVector = 4;

/// Neighbouring elements, kFlatVector or one.
template <int kCount>
struct FlatElements {
  static_assert(kCount == kFlatVector || kCount == 1);

  float at[kCount];

  static __device__ FlatElements load(const float* from) {
    if constexpr (kCount == 1) {
      return {*from};
    } else {
      const float4 loaded = *reinterpret_cast<const float4*>(from);
      return {loaded.x, loaded.y, loaded.z, loaded.w};
    }
  }

  __device__ void store(float* to) const {
    if constexpr (kCount == 1) {
      *to = at[0];
    } else {
      *reinterpret_cast<float4*>(to) = make_float4(at[0], at[1], at[2], at[3]);
    }
  }

  __device__ void store(__nv_bfloat16* to) const {
    if constexpr (kCount == 1) {
      *to = __float2bfloat16_rn(at[0]);
    } else {
      const __nv_bfloat162 low = __floats2bfloat162_rn(at[0], at[1]);
      const __nv_bfloat162 high = __floats2bfloat162_rn(at[2], at[3]);
      *reinterpret_cast<uint2*>(to) =
          make_uint2(reinterpret_cast<const unsigned&>(low), reinterpret_cast<const unsigned&>(high));
    }
  }
};

/// Calls `body(index, FlatElements)` for all elements of [begin, end), the kThreads threads of the block side
/// by side: for vectors where they are aligned, for single elements before and behind. The second argument
/// only tells how many elements there are.
template <int kThreads, typename Body>
__device__ void for_flat_elements(std::int64_t begin, std::int64_t end, Body body) {
  const std::int64_t aligned_begin = min((begin + kFlatVector - 1) / kFlatVector * kFlatVector, end);
  const std::int64_t aligned_end = max(end / kFlatVector * kFlatVector, aligned_begin);
  const std::int64_t thread = threadIdx.x;
  if (begin + thread < aligned_begin) body(begin + thread, FlatElements<1>{});
  for (std::int64_t i = aligned_begin + kFlatVector * thread; i < aligned_end; i += kFlatVector * kThreads) {
    body(i, FlatElements<kFlatVector>{});
  }
  if (aligned_end + thread < end) body(aligned_end + thread, FlatElements<1>{});
}

}  // namespace plenum::kernels::cuda

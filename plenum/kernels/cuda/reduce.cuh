#pragma once

namespace plenum::kernels::cuda {

// Sums and maxima over the threads of a warp or a block, in an order that is always the same. Blocks are
// one-dimensional and whole warps.

inline constexpr int kWarpSize = 32;
inline constexpr int kMaxWarps = 32;  ///< of a block
inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;

struct Sum {
  static constexpr float kNeutral = 0;
  template <typename Value>
  __device__ Value operator()(Value a, Value b) const {
    return a + b;
  }
};

struct Maximum {
  static constexpr float kNeutral = -INFINITY;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// `value` of all lanes combined, in every lane.
template <typename Value, typename Combine>
__device__ inline Value reduce_warp(Value value, Combine combine) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

__device__ inline float warp_sum(float value) {
  return reduce_warp(value, Sum{});
}
__device__ inline float warp_max(float value) {
  return reduce_warp(value, Maximum{});
}

/// What a block needs to combine a value.
template <typename Value>
struct BlockReductionOf {
  Value of_warp[kMaxWarps];
};
using BlockReduction = BlockReductionOf<float>;

/// `value` of all threads of the block combined, in every thread. `shared` is free again after the next
/// barrier.
template <typename Value, typename Combine>
__device__ inline Value reduce_block(Value value, Combine combine, BlockReductionOf<Value>& shared) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int num_warps = static_cast<int>(blockDim.x) / kWarpSize;
  value = reduce_warp(value, combine);
  if (lane == 0) shared.of_warp[warp] = value;
  __syncthreads();
  return reduce_warp(lane < num_warps ? shared.of_warp[lane] : Value{Combine::kNeutral}, combine);
}

template <typename Value>
__device__ inline Value block_sum(Value value, BlockReductionOf<Value>& shared) {
  return reduce_block(value, Sum{}, shared);
}
__device__ inline float block_max(float value, BlockReduction& shared) {
  return reduce_block(value, Maximum{}, shared);
}

}  // namespace plenum::kernels::cuda

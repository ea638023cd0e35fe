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

/// Sums several values over the lanes at once, in fewer exchanges than one after another: where two lanes
/// meet, each goes on with half of the values. Returns the sum of value lane / (32 / kCount).
template <int kCount>
__device__ inline float warp_sums(float (&values)[kCount]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  int distance = kWarpSize / 2;
#pragma unroll
  for (int count = kCount / 2; count > 0; count /= 2) {
    const bool is_upper = (lane & distance) != 0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float kept = is_upper ? values[i + count] : values[i];
      const float sent = is_upper ? values[i] : values[i + count];
      values[i] = kept + __shfl_xor_sync(kAllLanes, sent, distance);
    }
    distance /= 2;
  }
#pragma unroll
  for (; distance > 0; distance /= 2) values[0] += __shfl_xor_sync(kAllLanes, values[0], distance);
  return values[0];
}

/// What a block needs to sum several values.
template <int kCount>
struct BlockSums {
  alignas(16) float of_warp[kMaxWarps][kCount];
};

/// Sums several values over all threads of the block, in every thread. `shared` is free again after the next
/// barrier.
template <int kCount>
__device__ inline void block_sums(float (&values)[kCount], BlockSums<kCount>& shared) {
  constexpr int kLanesOfValue = kWarpSize / kCount;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int num_warps = static_cast<int>(blockDim.x) / kWarpSize;
  const float sum = warp_sums(values);
  if (lane % kLanesOfValue == 0) shared.of_warp[warp][lane / kLanesOfValue] = sum;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = shared.of_warp[0][i];
  for (int w = 1; w < num_warps; ++w) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] += shared.of_warp[w][i];
  }
}

}  // namespace plenum::kernels::cuda

#pragma once

namespace plenum::kernels::cuda {

// Sums and maxima over the threads of a warp or a block, in an order that is always the same. Threads are
// whole warps along x; blocks are one-dimensional but for sums over a ThreadRow.

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
  const unsigned lane = threadIdx.x % kWarpSize;
  int distance = kWarpSize / 2;
#pragma unroll
  for (int count = kCount / 2; count > 0; count /= 2) {
    const bool is_upper = (lane & static_cast<unsigned>(distance)) != 0;
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

/// Who adds up values and waits for each other: all threads of a block that is one-dimensional,
struct AllThreads {
  __device__ unsigned index() const { return 0; }
  __device__ void wait() const { __syncthreads(); }
};
/// or those that share threadIdx.y, whole warps. Of several warps there are at most 15 such rows.
struct ThreadRow {
  __device__ unsigned index() const { return threadIdx.y; }
  __device__ void wait() const {
    if (blockDim.x == kWarpSize) {
      __syncwarp();
    } else {
      // Barrier 0 is the one of all threads.
      asm volatile("bar.sync %0, %1;" ::"r"(threadIdx.y + 1), "r"(blockDim.x) : "memory");
    }
  }
};

/// Sums several values over `threads`, at most kThreads, in every one of them. `shared` is free again after
/// their next barrier.
template <int kThreads, int kCount, typename Threads = AllThreads>
__device__ inline void block_sums(float (&values)[kCount], BlockSums<kCount>& shared, Threads threads = {}) {
  constexpr unsigned kLanesOfValue = kWarpSize / kCount;
  constexpr unsigned kWarps = kThreads / kWarpSize;
  const unsigned lane = threadIdx.x % kWarpSize;
  const unsigned num_warps = blockDim.x / kWarpSize;
  // Few warps are added up without asking first how many there are: places of those that are not are read,
  // and nobody writes them.
  constexpr bool kIsUnrolled = kWarps <= 4;
  const unsigned num_places = kIsUnrolled ? kWarps : num_warps;
  float(*const of_warp)[kCount] = shared.of_warp + threads.index() * num_places;
  const float sum = warp_sums(values);
  if (lane % kLanesOfValue == 0) of_warp[threadIdx.x / kWarpSize][lane / kLanesOfValue] = sum;
  threads.wait();
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = of_warp[0][i];
#pragma unroll(kIsUnrolled ? kWarps : 1)
  for (unsigned w = 1; w < num_places; ++w) {
    float read[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) read[i] = of_warp[w][i];
    if (w >= num_warps) break;
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] += read[i];
  }
}

}  // namespace plenum::kernels::cuda

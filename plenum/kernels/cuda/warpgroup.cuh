#pragma once

namespace plenum::kernels::cuda {

// A warpgroup of Hopper: four warps, the first of them at a multiple of four.

__device__ inline int warp_of_group() {
  return static_cast<int>(threadIdx.x) / 32 % 4;
}

/// Of its warp.
__device__ inline bool is_first_lane() {
  return threadIdx.x % 32 == 0;
}

/// Waits for all warps of this warpgroup of the block. Barrier 0 is that of the block.
__device__ inline void sync_warpgroup(int warpgroup) {
  asm volatile("bar.sync %0, 128;" ::"r"(1 + warpgroup) : "memory");
}

/// Orders this thread's accesses to shared memory before those of the tensor cores and the copy engine, once
/// others know of them.
__device__ inline void fence_shared_writes() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace plenum::kernels::cuda

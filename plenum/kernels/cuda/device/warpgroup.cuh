#pragma once

namespace plenum::kernels::cuda {

// A warpgroup of Hopper: four warps, the first of them at a multiple of four.

/// Of a thread of the block.
__device__ inline int warp_of_group(int thread = static_cast<int>(threadIdx.x)) {
  return thread / 32 % 4;
}

/// threadIdx.x, read anew: what is computed from it is computed where it is used, instead of before a loop
/// through which it would take registers.
__device__ inline int reread_thread() {
  unsigned thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  __builtin_assume(thread < 1024);
  return static_cast<int>(thread);
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

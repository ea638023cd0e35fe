#pragma once

#include <cstdint>

#include "plenum/kernels/cuda/device/shared_address.cuh"

namespace plenum::kernels::cuda {

// Copies from global to shared memory that go on while the thread computes.

/// Copies kBytes (4, 8 or 16) from global to shared memory in the background, or writes zeros and reads
/// nothing.
template <int kBytes>
__device__ inline void copy_async(std::uint32_t to, const void* from, bool is_real) {
  const int source_bytes = is_real ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(source_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes),
                 "r"(source_bytes)
                 : "memory");
  }
}
/// Makes a group of the copies that this thread has started since the last one.
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits for this thread's copies, except those of the last kPending groups that were committed. Those of
/// other threads are seen after the next barrier.
template <int kPending = 0>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace plenum::kernels::cuda

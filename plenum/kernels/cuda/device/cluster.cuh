#pragma once

#include <cstdint>

#include "plenum/kernels/cuda/device/mbarrier.cuh"

namespace plenum::kernels::cuda {

// Thread blocks of a cluster run at the same time and reach each other's shared memory.

__device__ inline int cluster_rank() {
  std::uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}

/// By all threads of all blocks of the cluster. What they wrote before is seen behind it.
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// Arrives at the barrier that lies at the same place in another block of the cluster. Orders no writes of
/// this thread for the other block: as a release at cluster scope each arrival would wait for a fence of the
/// whole GPU (1 us a stage). Readers that leave a stage have written nothing.
__device__ inline void arrive_at_rank(const Mbarrier& barrier, int rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}\n" ::"r"(barrier.address()),
      "r"(rank)
      : "memory");
}

/// As copy_box(), to the same place in all blocks whose bit of `ranks` is set; each one's own barrier, at the
/// place of this one, counts the bytes that it gets.
__device__ inline void copy_box_to_ranks(const CUtensorMap& map, void* shared, Mbarrier& barrier, int column,
                                         int row, std::uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(shared)),
      "l"(&map), "r"(column), "r"(row), "r"(barrier.address()), "h"(ranks)
      : "memory");
}

}  // namespace plenum::kernels::cuda

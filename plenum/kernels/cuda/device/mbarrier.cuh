#pragma once

#include <cstdint>

#include <cuda.h>

#include "plenum/kernels/cuda/device/shared_address.cuh"
#include "plenum/kernels/cuda/device/tensor_map.h"

namespace plenum::kernels::cuda {

// Barriers in shared memory that count arrivals and bytes, and the copies that report to them.

/// A barrier that goes through phases: a phase ends once its arrivals have come and its expected bytes are
/// there. Whoever waits names the parity of the phase it waits for; phases are counted from 0.
class Mbarrier {
 public:
  __device__ void init(int num_arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(num_arrivals) : "memory");
  }

  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
  }

  /// Arrives, and lets the phase wait for this many bytes of bulk copies.
  __device__ void arrive_expecting(int num_bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(num_bytes)
                 : "memory");
  }

  __device__ void wait(std::uint32_t parity) const {
    while (!is_done(parity)) {
    }
  }

  __device__ std::uint32_t address() const { return shared_address(this); }

 private:
  /// Suspends the thread for a while chosen by the hardware if the phase is not done.
  __device__ bool is_done(std::uint32_t parity) const {
    std::uint32_t done;
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(address()), "r"(parity)
        : "memory");
    return done != 0;
  }

  std::uint64_t state_;
};

/// Makes initialised barriers visible to the copy engine and the cluster; before the barrier of the block or
/// cluster behind which others use them.
__device__ inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Starts the copy of a box of 64 columns of a matrix described by make_tensor_map to shared memory: of the
/// rows from `row` on, num_rows (at least 1), and zeros in place of what is missing to 64. The barrier counts
/// the bytes of all 64.
__device__ inline void copy_rows(const CUtensorMap& map, void* shared, Mbarrier& barrier, int column, int row,
                                 int num_rows) {
  const int num_real = min(num_rows, kBoxRows);
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
      "[%5];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(column), "r"(kBoxRows - num_real), "r"(row + num_real), "r"(barrier.address())
      : "memory");
}

/// Starts the copy of a box of a matrix described by make_box_map to shared memory; its bytes are counted by
/// the barrier, those beyond the matrix included.
__device__ inline void copy_box(const CUtensorMap& map, void* shared, Mbarrier& barrier, int column,
                                int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
      "[%4];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(column), "r"(row), "r"(barrier.address())
      : "memory");
}

/// Registers per thread of this warpgroup from here on. A block starts with an equal share for all; what
/// producers give back, warpgroups that compute can take. Multiples of 8.
template <int kRegisters>
__device__ inline void shrink_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void grow_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace plenum::kernels::cuda

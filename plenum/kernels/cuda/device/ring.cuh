#pragma once

#include <cstdint>

#include "plenum/kernels/cuda/device/mbarrier.cuh"

namespace plenum::kernels::cuda {

// Stages in shared memory that a producer fills and others read, in turn, and the registers of both.

/// Of a block on Hopper.
inline constexpr int kMostSharedBytes = 232448;

/// Whether registers suffice for a block of feeders and workers: it starts with an equal share for all, a
/// multiple of 8, and what feeders give back must cover what workers take, or these wait forever.
constexpr bool registers_suffice(int num_workers, int feeder_registers, int worker_registers) {
  constexpr int kRegisters = 65536;
  const int share = kRegisters / (128 * (num_workers + 1)) / 8 * 8;
  return feeder_registers + num_workers * worker_registers <= share * (num_workers + 1);
}

/// A place in a ring, and the parity of its phase there.
template <int kStages>
struct RingCursor {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ void advance(int steps) {
    stage += steps;
    parity ^= stage / kStages & 1;
    stage %= kStages;
  }
};

/// The barriers of a ring: a stage is full when it was loaded, empty when all its readers have left it.
template <int kStages>
struct RingBarriers {
  Mbarrier full[kStages];
  Mbarrier empty[kStages];

  /// By how many arrivals a stage gets full and empty: num_readers counts threads where each calls
  /// release().
  __device__ void init(int num_producers, int num_readers) {
    for (int s = 0; s < kStages; ++s) {
      full[s].init(num_producers);
      empty[s].init(num_readers);
    }
  }
  __device__ void wait_full(const RingCursor<kStages>& at) const { full[at.stage].wait(at.parity); }
  __device__ void wait_empty(const RingCursor<kStages>& at) const { empty[at.stage].wait(at.parity ^ 1); }

  /// By each thread that has read the stage.
  __device__ void release(const RingCursor<kStages>& at) { empty[at.stage].arrive(); }
};

}  // namespace plenum::kernels::cuda

#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/kernels/cuda/device/cluster.cuh"
#include "plenum/kernels/cuda/device/ring.cuh"
#include "plenum/kernels/cuda/device/tensor_map.h"
#include "plenum/kernels/cuda/device/warp_box.cuh"
#include "plenum/kernels/cuda/device/warpgroup.cuh"
#include "plenum/kernels/cuda/product/product_tile.cuh"

namespace plenum::kernels::cuda {

// Products of bf16 matrices on Hopper, with epilogues that run under the next product. A block stays on its
// multiprocessor and goes through many tiles. One warpgroup feeds: it lets the copy engine bring A and B in
// steps of 64 along the sum through a ring of stages. Two compute, in turn: while one's products run, the
// other finishes its tile. A tile has one owner and one order, so the bytes do not depend on the number of
// blocks.
//
// An epilogue has
//     Arguments               of the launch
//     Shared                  in shared memory, for one warpgroup; init() by one thread
//     Epilogue(args, shared)  by every thread of a warpgroup, once
//     begin(d, place)         before the products of a tile: sets d, to which they are added
//     finish(d, place)        behind them

inline constexpr int kWorkers = 2;
inline constexpr int kProductThreads = 128 * (kWorkers + 1);
inline constexpr int kProductFeederRegisters = 24;
inline constexpr int kProductWorkerRegisters = 240;
static_assert(registers_suffice(kWorkers, kProductFeederRegisters, kProductWorkerRegisters));

template <typename Epilogue>
struct ProductArguments {
  CUtensorMap a;
  CUtensorMap b;
  int m;
  int n;
  int num_steps;  ///< of 64 along the sum
  typename Epilogue::Arguments epilogue;
};

template <typename Tile, typename Epilogue>
struct ProductShared {
  static constexpr int kBarrierBytes = 512;
  static constexpr int kStages =
      (kMostSharedBytes - kBarrierBytes - kWorkers * static_cast<int>(sizeof(typename Epilogue::Shared))) /
      Tile::kStageBytes;
  static_assert(kStages == 4, "with fewer, products wait for their factors");

  alignas(1024) unsigned char a[kStages][Tile::kBytesOfA];
  alignas(1024) unsigned char b[kStages][Tile::kBytesOfB];
  alignas(1024) typename Epilogue::Shared epilogue[kWorkers];
  RingBarriers<kStages> ring;
  Mbarrier turn[kWorkers];

  __device__ void init() {
    ring.init(1, 4 * kBlocksOfCluster);
    for (Mbarrier& barrier : turn) barrier.init(4);
    for (auto& one : epilogue) one.init();
    fence_barrier_init();
  }
};

/// By one thread: brings the stages of all tiles of this block.
template <typename Tile, typename Epilogue>
__device__ inline void feed(const ProductArguments<Epilogue>& args, TileWalk<Tile> walk,
                            ProductShared<Tile, Epilogue>& shared) {
  constexpr std::uint16_t kBothRanks = 0b11;
  const int first_of_b = cluster_rank() * Tile::kBoxRowsOfB;
  RingCursor<ProductShared<Tile, Epilogue>::kStages> at;
  for (; !walk.is_done(); walk.advance()) {
    const TilePlace place = walk.place();
    for (int step = 0; step < args.num_steps; ++step, at.advance()) {
      shared.ring.wait_empty(at);
      Mbarrier& full = shared.ring.full[at.stage];
      full.arrive_expecting(Tile::kStageBytes);
      copy_box(args.a, shared.a[at.stage], full, step * kStepElements, place.row);
      unsigned char* const b = shared.b[at.stage] + first_of_b * kStepRowBytes;
      if constexpr (Tile::kB == TileB::Transposed) {
        copy_box_to_ranks(args.b, b, full, step * kStepElements, place.column + first_of_b, kBothRanks);
      } else {
        for (int c = 0; c < Tile::kColumns / 64; ++c)
          copy_box_to_ranks(args.b, b + c * kTileBytes, full, place.column + 64 * c,
                            step * kStepElements + first_of_b, kBothRanks);
      }
    }
  }
}

/// By all threads of a worker that have read the stage: tells both blocks, since the copies of both fill it.
template <int kStages>
__device__ inline void release_in_cluster(RingBarriers<kStages>& ring, const RingCursor<kStages>& at) {
  __syncwarp();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane < kBlocksOfCluster) arrive_at_rank(ring.empty[at.stage], lane);
}

template <typename Tile, typename Epilogue>
__device__ inline void work(int worker, const ProductArguments<Epilogue>& args, TileWalk<Tile> walk,
                            ProductShared<Tile, Epilogue>& shared) {
  using Cursor = RingCursor<ProductShared<Tile, Epilogue>::kStages>;
  Epilogue epilogue(args.epilogue, shared.epilogue[worker]);
  const std::uint64_t a = describe_tile(shared_address(shared.a[0]));
  const std::uint64_t b = describe_tiles(shared_address(shared.b[0]));
  Cursor at;
  at.advance(worker * args.num_steps);
  walk.advance(worker);
  // The first worker's first turn comes without the other's leave.
  std::uint32_t turn_parity = worker == 0 ? 1 : 0;
  for (; !walk.is_done(); walk.advance(kWorkers), at.advance(args.num_steps), turn_parity ^= 1) {
    const TilePlace place = walk.place();
    // Set anew for each tile, and not by its first product: else the compiler takes all of d to be alive in
    // the epilogue, which then has too few registers to work on several elements at a time.
    typename Tile::Accumulators d;
    epilogue.begin(d, place);
    hold(d);
    __syncwarp();  // one lane may have started copies alone, and products need whole warps
    shared.turn[worker].wait(turn_parity);
    Cursor previous = at;
    for (int step = 0; step < args.num_steps; ++step) {
      shared.ring.wait_full(at);
      wgmma_fence();
      issue_step<Tile>(d, a + at.stage * (Tile::kBytesOfA >> 4), b + at.stage * (Tile::kBytesOfB >> 4));
      wgmma_commit();
      if (step > 0) {
        wgmma_wait<1>();
        release_in_cluster(shared.ring, previous);
      }
      previous = at;
      at.advance();
    }
    __syncwarp();
    if (is_first_lane()) shared.turn[1 - worker].arrive();
    __syncwarp();
    wgmma_wait<0>();
    hold(d);
    release_in_cluster(shared.ring, previous);
    epilogue.finish(d, place);
  }
  if (is_first_lane()) wait_until_read<0>();
  __syncwarp();
}

template <typename Tile, typename Epilogue>
__global__ void __launch_bounds__(kProductThreads, 1)
    product_kernel(const __grid_constant__ ProductArguments<Epilogue> args) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<ProductShared<Tile, Epilogue>*>(shared_bytes);
  if (threadIdx.x == 0) shared.init();
  __syncwarp();
  // No block may copy to the other, or arrive there, before that one is ready.
  cluster_sync();
  const TileWalk<Tile> walk(args.m, args.n, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
  const int warpgroup = __shfl_sync(0xFFFFFFFF, threadIdx.x / 128, 0);
  if (warpgroup == kWorkers) {
    shrink_registers<kProductFeederRegisters>();
    if (threadIdx.x == 128 * kWorkers) feed(args, walk, shared);
    __syncwarp();
  } else {
    grow_registers<kProductWorkerRegisters>();
    work(warpgroup, args, walk, shared);
  }
  cluster_sync();  // nor may it leave before
}

/// Launches as many blocks as run at the same time.
template <typename Tile, typename Epilogue>
cudaError_t launch_product(const ProductArguments<Epilogue>& args, cudaStream_t stream) {
  constexpr std::size_t kSharedBytes = sizeof(ProductShared<Tile, Epilogue>);
  static_assert(kSharedBytes <= kMostSharedBytes);
  const auto kernel = product_kernel<Tile, Epilogue>;
  if (cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes))
    return error;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = kBlocksOfCluster;
  cluster.val.clusterDim.y = 1;
  cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = kBlocksOfCluster;
  config.blockDim = kProductThreads;
  config.dynamicSmemBytes = kSharedBytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  // Clusters stay within a part of the GPU, so some multiprocessors may be left over.
  int num_clusters = 0;
  if (cudaError_t error = cudaOccupancyMaxActiveClusters(&num_clusters, kernel, &config)) return error;
  config.gridDim = static_cast<unsigned>(num_clusters * kBlocksOfCluster);
  return cudaLaunchKernelEx(&config, kernel, args);
}

/// Describes the factors: A [m, k], and B [k, n] or by TileB::Transposed its transpose [n, k].
template <typename Tile, typename Epilogue>
cudaError_t describe_factors(const __nv_bfloat16* a, const __nv_bfloat16* b, std::int64_t m, std::int64_t n,
                             std::int64_t k, ProductArguments<Epilogue>& args) {
  args.m = static_cast<int>(m);
  args.n = static_cast<int>(n);
  args.num_steps = static_cast<int>(k / kStepElements);
  if (cudaError_t error = make_box_map(a, m, k, Tile::kBoxRowsOfA, args.a)) return error;
  if constexpr (Tile::kB == TileB::Transposed)
    return make_box_map(b, n, k, Tile::kBoxRowsOfB, args.b);
  else
    return make_box_map(b, k, n, Tile::kBoxRowsOfB, args.b);
}

}  // namespace plenum::kernels::cuda

#include <cmath>

#include "plenum/kernels/cuda/attention_fragments.cuh"
#include "plenum/kernels/cuda/attention_gaps.cuh"
#include "plenum/kernels/cuda/attention_sm90.h"
#include "plenum/kernels/cuda/attention_stream.cuh"
#include "plenum/kernels/cuda/tensor_map.h"

namespace plenum::kernels::cuda {
namespace {

// Each item goes through two phases (see attention_stream.cuh for the flow and docs/math/attention.md for the
// formulas):
//   1. queries are owned, keys and values streamed: S = Q K^T, dP = dO V^T, dQ += dS K;
//   2. keys and values are owned, queries and dO streamed: S^T = K Q^T, dP^T = V dO^T, dV += P^T dO,
//      dK += dS^T Q.
// S and dP are computed twice, seven products instead of five, so that every sum has one owner and lives in
// registers: nothing is added across warpgroups, and the transposed scores of phase 2 are operands as they
// stand. The second phase finds most of what it reads in the L2 cache.
constexpr int kWarpgroups = 3;
constexpr int kStages = 10;
constexpr int kProducerRegisters = 32;
constexpr int kWorkerRegisters = 160;  // 32 + 3 * 160 <= 4 * 128
constexpr int kThreads = 128 * (kWarpgroups + 1);
constexpr int kFirstProducerThread = 128 * kWarpgroups;

constexpr float kLog2E = 1.4426950408889634F;
constexpr std::uint64_t kTile = kTileBytes >> 4;  // in a descriptor

using Ring = RingBarriers<kStages>;
using Cursor = RingCursor<kStages>;
using Plan = ItemPlan<kStages, kWarpgroups>;

/// Of a query: what turns its scores into weights, P = 2^(S scale_log2 + shift), and its D = sum of dO * O.
struct QueryStatistics {
  float shift;
  float delta;
};

struct Shared {
  alignas(1024) unsigned char streamed[2][kStages][kTileBytes];   ///< keys and values, or queries and dO
  alignas(1024) unsigned char owned[kWarpgroups][2][kTileBytes];  ///< the other way round
  alignas(16) QueryStatistics statistics[kStages][kTileRows];
  Ring ring;
  ItemQueue queue;
  Mbarrier owned_full[kWarpgroups];
  Mbarrier statistics_written;  ///< to global memory, of all queries of the item
};

/// Which phases a launch runs. A tile that is a whole sequence goes through both at once; of longer
/// sequences, phase 2 needs statistics of other tiles and waits for a second launch.
enum class Launch { First, Second };

struct Parameters {
  ItemSource items;
  const __nv_bfloat16* context_THK;
  const __nv_bfloat16* dcontext_THK;
  const float* lse_HT;
  __nv_bfloat16* dqkv_T3HK;
  QueryStatistics* statistics_HT;
  int num_rows;
  int num_heads;
  float scale;  ///< 1 / sqrt K
};

struct Maps {
  CUtensorMap qkv;
  CUtensorMap dcontext;
};

/// Where the three parts of a head begin in a row of qkv.
__device__ inline int column_of(const Parameters& p, int part, int head) {
  return (part * p.num_heads + head) * kTileRows;
}

__device__ inline bool is_whole(const AttentionItem& item) {
  return item.length <= kAttentionTileRows;
}

template <Launch kLaunch>
__device__ inline bool has_phase1() {
  return kLaunch == Launch::First;
}
template <Launch kLaunch>
__device__ inline bool has_phase2(const AttentionItem& item) {
  return is_whole(item) == (kLaunch == Launch::First);
}

/// Streams a phase's blocks. By all threads of the producer's warp.
template <int kPhase>
__device__ inline void stream_phase(const Maps& maps, const Parameters& p, const AttentionItem& item,
                                    Cursor& at, Shared& shared) {
  const int lane = threadIdx.x % 32;
  const Plan plan(item, kAttentionTileRows);
  for (int i = 0, j = 0; i < plan.num_loads(); ++i, at.advance()) {
    shared.ring.wait_empty(at);
    Mbarrier& full = shared.ring.full[at.stage];
    const int row = item.start + j * kTileRows;
    if (lane == 0) {
      full.arrive_expecting(2 * kTileBytes);
      copy_box(maps.qkv, shared.streamed[0][at.stage], full, column_of(p, kPhase == 1 ? 1 : 0, item.head),
               row);
      if constexpr (kPhase == 1)
        copy_box(maps.qkv, shared.streamed[1][at.stage], full, column_of(p, 2, item.head), row);
      else
        copy_box(maps.dcontext, shared.streamed[1][at.stage], full, item.head * kTileRows, row);
    }
    if constexpr (kPhase == 2) {
      const QueryStatistics* const statistics =
          p.statistics_HT + static_cast<std::int64_t>(item.head) * p.num_rows + row;
      for (int r = lane; r < kTileRows; r += 32) {
        const bool is_valid = j * kTileRows + r < item.length;
        copy_8_bytes(&shared.statistics[at.stage][r], statistics + (is_valid ? r : 0), is_valid);
      }
    }
    full.arrive_after_copies();
    j = j + 1 == plan.num_streamed ? 0 : j + 1;
  }
}

template <Launch kLaunch>
__device__ inline void produce(const Maps& maps, const Parameters& p, Shared& shared) {
  Cursor at;
  RingCursor<ItemQueue::kSlots> slot;
  RingCursor<1> written;
  for (;;) {
    AttentionItem item{};
    if (threadIdx.x % 32 == 0) {
      item = p.items.take();
      shared.queue.push(slot, item);
    }
    slot = {__shfl_sync(0xFFFFFFFF, slot.stage, 0), __shfl_sync(0xFFFFFFFF, slot.parity, 0)};
    item = {__shfl_sync(0xFFFFFFFF, item.start, 0), __shfl_sync(0xFFFFFFFF, item.length, 0),
            __shfl_sync(0xFFFFFFFF, item.first, 0), __shfl_sync(0xFFFFFFFF, item.head, 0)};
    if (item.length == 0) return;
    if (has_phase1<kLaunch>()) {
      stream_phase<1>(maps, p, item, at, shared);
      shared.statistics_written.wait(written.parity);
      written.advance();
    }
    if (has_phase2<kLaunch>(item)) stream_phase<2>(maps, p, item, at, shared);
  }
}

/// A warpgroup's own two tiles in shared memory.
struct OwnedTiles {
  int warpgroup;
  std::uint32_t parity = 0;

  /// Loads boxes of 64 rows from `row` on; returns when they are there.
  __device__ void load(const CUtensorMap& map0, int column0, const CUtensorMap& map1, int column1, int row,
                       Shared& shared) {
    sync_warpgroup(warpgroup);  // all four warps are done with what the tiles held
    if (threadIdx.x % 128 == 0) {
      Mbarrier& full = shared.owned_full[warpgroup];
      full.arrive_expecting(2 * kTileBytes);
      copy_box(map0, shared.owned[warpgroup][0], full, column0, row);
      copy_box(map1, shared.owned[warpgroup][1], full, column1, row);
    }
  }
  __device__ void wait(const Shared& shared) {
    shared.owned_full[warpgroup].wait(parity);
    parity ^= 1;
  }
  __device__ std::uint64_t describe(const Shared& shared, int which) const {
    return describe_tile(__cvta_generic_to_shared(shared.owned[warpgroup][which]));
  }
};

/// The statistics of a thread's two queries, also written out for phase 2.
__device__ inline void compute_statistics(const Parameters& p, const AttentionItem& item, int first,
                                          const FragmentRows& rows, QueryStatistics (&statistics)[2]) {
  const std::int64_t row = item.start + first;
  const std::int64_t stride = static_cast<std::int64_t>(p.num_heads) * kTileRows;
  const std::int64_t at = row * stride + item.head * kTileRows;
  const int num_rows = item.length - first;
  float delta[2];
  dot_rows(load_chunks(p.context_THK + at, stride, num_rows, rows),
           load_chunks(p.dcontext_THK + at, stride, num_rows, rows), delta);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::int64_t index = static_cast<std::int64_t>(item.head) * p.num_rows + row + rows.row[i];
    const bool is_valid = rows.row[i] < num_rows;
    statistics[i] = {is_valid ? -kLog2E * p.lse_HT[index] : 0.0F, delta[i]};
    if (is_valid && rows.lane_in_quad == 0) p.statistics_HT[index] = statistics[i];
  }
}

/// Phase 1 for one block of queries.
__device__ inline void queries_backward(const Maps& maps, const Parameters& p, const AttentionItem& item,
                                        int num_blocks, int block, Cursor at, bool releases, bool is_last,
                                        OwnedTiles& owned, Shared& shared) {
  const FragmentRows rows = fragment_rows();
  const int first = item.first + block * kTileRows;
  const int row = item.start + first;
  owned.load(maps.qkv, column_of(p, 0, item.head), maps.dcontext, item.head * kTileRows, row, shared);
  QueryStatistics statistics[2];
  compute_statistics(p, item, first, rows, statistics);
  if (is_last) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) shared.statistics_written.arrive();
  }
  owned.wait(shared);

  const float scale_log2 = p.scale * kLog2E;
  const std::uint64_t queries = owned.describe(shared, 0);
  const std::uint64_t dout = owned.describe(shared, 1);
  const std::uint64_t keys = describe_tile(__cvta_generic_to_shared(shared.streamed[0][0]));
  const std::uint64_t values = describe_tile(__cvta_generic_to_shared(shared.streamed[1][0]));
  Accumulator s, dp, dq;
  RegisterOperand ds;
#pragma unroll
  for (int i = 0; i < 32; ++i) dq[i] = 0;

  for (int j = 0; j < num_blocks; ++j, at.advance()) {
    shared.ring.wait_full(at);
    wgmma_fence();
    issue_product<TileB::Transposed>(s, queries, keys + at.stage * kTile, 0);
    wgmma_commit();
    issue_product<TileB::Transposed>(dp, dout, values + at.stage * kTile, 0);
    wgmma_commit();
    wgmma_wait<1>();
    hold(s);
#pragma unroll
    for (int i = 0; i < 32; ++i) s[i] = fast_exp2(fmaf(s[i], scale_log2, statistics[i / 2 % 2].shift));
    const int num_columns = item.length - j * kTileRows;
    if (num_columns < kTileRows)
#pragma unroll
      for (int i = 0; i < 32; ++i)
        if (8 * (i / 4) + 2 * rows.lane_in_quad + i % 2 >= num_columns) s[i] = 0;
    wgmma_wait<0>();
    hold(dp);
#pragma unroll
    for (int i = 0; i < 32; ++i) s[i] *= dp[i] - statistics[i / 2 % 2].delta;
    to_operand(s, ds);
    wgmma_fence();
    issue_product<TileB::Plain>(dq, ds, keys + at.stage * kTile, 1);
    wgmma_commit();
    wgmma_wait<0>();
    hold(dq);
    if (releases) shared.ring.release(at);
  }
  const float scale[2] = {p.scale, p.scale};
  const std::int64_t stride = 3LL * p.num_heads * kTileRows;
  store_rows(dq, scale, p.dqkv_T3HK + row * stride + column_of(p, 0, item.head), stride, item.length - first,
             rows);
}

/// Phase 2 for one block of keys and values.
__device__ inline void keys_backward(const Maps& maps, const Parameters& p, const AttentionItem& item,
                                     int num_blocks, int block, Cursor at, bool releases, OwnedTiles& owned,
                                     Shared& shared) {
  const FragmentRows rows = fragment_rows();
  const int first = item.first + block * kTileRows;
  const int row = item.start + first;
  owned.load(maps.qkv, column_of(p, 1, item.head), maps.qkv, column_of(p, 2, item.head), row, shared);
  owned.wait(shared);

  const float scale_log2 = p.scale * kLog2E;
  const std::uint64_t keys = owned.describe(shared, 0);
  const std::uint64_t values = owned.describe(shared, 1);
  const std::uint64_t queries = describe_tile(__cvta_generic_to_shared(shared.streamed[0][0]));
  const std::uint64_t dout = describe_tile(__cvta_generic_to_shared(shared.streamed[1][0]));
  Accumulator s, dp, dk, dv;
  RegisterOperand weights;
#pragma unroll
  for (int i = 0; i < 32; ++i) dk[i] = dv[i] = 0;

  for (int j = 0; j < num_blocks; ++j, at.advance()) {
    shared.ring.wait_full(at);
    wgmma_fence();
    issue_product<TileB::Transposed>(s, keys, queries + at.stage * kTile, 0);
    wgmma_commit();
    issue_product<TileB::Transposed>(dp, values, dout + at.stage * kTile, 0);
    wgmma_commit();
    // Two neighbouring columns, that is queries, per float4: shift, delta, shift, delta.
    const auto* const statistics =
        reinterpret_cast<const float4*>(shared.statistics[at.stage]) + rows.lane_in_quad;
    wgmma_wait<1>();
    hold(s);
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const float4 of = statistics[4 * c];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        s[4 * c + 2 * i] = fast_exp2(fmaf(s[4 * c + 2 * i], scale_log2, of.x));
        s[4 * c + 2 * i + 1] = fast_exp2(fmaf(s[4 * c + 2 * i + 1], scale_log2, of.z));
      }
    }
    const int num_columns = item.length - j * kTileRows;
    if (num_columns < kTileRows)
#pragma unroll
      for (int i = 0; i < 32; ++i)
        if (8 * (i / 4) + 2 * rows.lane_in_quad + i % 2 >= num_columns) s[i] = 0;
    to_operand(s, weights);
    wgmma_fence();
    issue_product<TileB::Plain>(dv, weights, dout + at.stage * kTile, 1);
    wgmma_commit();
    wgmma_wait<1>();
    hold(dp);
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const float4 of = statistics[4 * c];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        s[4 * c + 2 * i] *= dp[4 * c + 2 * i] - of.y;
        s[4 * c + 2 * i + 1] *= dp[4 * c + 2 * i + 1] - of.w;
      }
    }
    RegisterOperand ds;
    to_operand(s, ds);
    wgmma_fence();
    issue_product<TileB::Plain>(dk, ds, queries + at.stage * kTile, 1);
    wgmma_commit();
    wgmma_wait<0>();
    hold(dv);
    hold(dk);
    if (releases) shared.ring.release(at);
  }
  const std::int64_t stride = 3LL * p.num_heads * kTileRows;
  __nv_bfloat16* const out = p.dqkv_T3HK + row * stride;
  const float dk_scale[2] = {p.scale, p.scale};
  const float dv_scale[2] = {1, 1};
  store_rows(dk, dk_scale, out + column_of(p, 1, item.head), stride, item.length - first, rows);
  store_rows(dv, dv_scale, out + column_of(p, 2, item.head), stride, item.length - first, rows);
}

template <Launch kLaunch>
__device__ inline void work(const Maps& maps, const Parameters& p, int warpgroup, Shared& shared) {
  WarpgroupWalk<kStages, kWarpgroups> walk{warpgroup, {}};
  RingCursor<ItemQueue::kSlots> slot;
  OwnedTiles owned{warpgroup};
  for (;;) {
    const AttentionItem item = shared.queue.pop(slot);
    if (item.length == 0) return;
    const Plan plan(item, kAttentionTileRows);
    if (has_phase1<kLaunch>())
      walk.over(
          plan, shared.ring,
          [&](int block, const Cursor& at, bool releases, bool is_last) {
            queries_backward(maps, p, item, plan.num_streamed, block, at, releases, is_last, owned, shared);
          },
          [&](bool is_last) {
            if (is_last && threadIdx.x % 32 == 0) shared.statistics_written.arrive();
          });
    if (has_phase2<kLaunch>(item))
      walk.over(
          plan, shared.ring,
          [&](int block, const Cursor& at, bool releases, bool) {
            keys_backward(maps, p, item, plan.num_streamed, block, at, releases, owned, shared);
          },
          [](bool) {});
  }
}

template <Launch kLaunch>
__global__ void __launch_bounds__(kThreads, 1)
    attention_backward_kernel(const __grid_constant__ Maps maps, const __grid_constant__ Parameters p) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  Shared& shared = *reinterpret_cast<Shared*>(shared_bytes);
  if (threadIdx.x == 0) {
    shared.ring.init(1 + 32, 4 * kWarpgroups);
    shared.queue.barriers.init(1, 4 * kWarpgroups);
    for (Mbarrier& full : shared.owned_full) full.init(1);
    shared.statistics_written.init(4 * kWarpgroups);
    fence_barrier_init();
  }
  __syncthreads();

  const int warpgroup = __shfl_sync(0xFFFFFFFF, threadIdx.x / 128, 0);
  if (warpgroup == kWarpgroups) {
    shrink_registers<kProducerRegisters>();
    if (threadIdx.x < kFirstProducerThread + 32) produce<kLaunch>(maps, p, shared);
  } else {
    grow_registers<kWorkerRegisters>();
    work<kLaunch>(maps, p, warpgroup, shared);
  }
}

template <Launch kLaunch>
cudaError_t launch(const Maps& maps, const Parameters& parameters, int num_multiprocessors,
                   cudaStream_t stream) {
  if (cudaError_t error = cudaFuncSetAttribute(attention_backward_kernel<kLaunch>,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared)))
    return error;
  if (cudaError_t error = cudaMemsetAsync(parameters.items.next, 0, sizeof(std::int32_t), stream))
    return error;
  attention_backward_kernel<kLaunch>
      <<<num_multiprocessors, kThreads, sizeof(Shared), stream>>>(maps, parameters);
  return cudaGetLastError();
}

constexpr std::size_t kCounterBytes = 256;

}  // namespace

std::size_t attention_scratch_bytes_sm90(std::int64_t num_rows, std::int64_t num_heads) {
  return kCounterBytes + static_cast<std::size_t>(num_rows * num_heads) * sizeof(QueryStatistics);
}

cudaError_t attention_backward_sm90(const AttentionArguments& args, cudaStream_t stream) {
  const std::int64_t width = static_cast<std::int64_t>(args.num_heads) * kTileRows;
  Maps maps;
  if (cudaError_t error = make_tensor_map(args.qkv_T3HK, args.num_rows, 3 * width, maps.qkv)) return error;
  if (cudaError_t error = make_tensor_map(args.dcontext_THK, args.num_rows, width, maps.dcontext))
    return error;
  int device = 0, num_multiprocessors = 0;
  if (cudaError_t error = cudaGetDevice(&device)) return error;
  if (cudaError_t error =
          cudaDeviceGetAttribute(&num_multiprocessors, cudaDevAttrMultiProcessorCount, device))
    return error;

  auto* const scratch = static_cast<unsigned char*>(args.scratch);
  const Parameters parameters = {
      {args.tiles, args.num_tiles, reinterpret_cast<std::int32_t*>(scratch), args.num_heads},
      args.context_THK,
      args.dcontext_THK,
      args.lse_HT,
      args.dqkv_T3HK,
      reinterpret_cast<QueryStatistics*>(scratch + kCounterBytes),
      args.num_rows,
      args.num_heads,
      1 / std::sqrt(static_cast<float>(kTileRows))};
  if (cudaError_t error = launch<Launch::First>(maps, parameters, num_multiprocessors, stream)) return error;
  if (args.max_length > kAttentionTileRows)
    if (cudaError_t error = launch<Launch::Second>(maps, parameters, num_multiprocessors, stream))
      return error;
  zero_gaps<<<num_multiprocessors, 256, 0, stream>>>(args.dqkv_T3HK, 3 * width, args.gaps, args.num_gaps);
  return cudaGetLastError();
}

}  // namespace plenum::kernels::cuda

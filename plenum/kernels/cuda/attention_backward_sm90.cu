#include <cmath>

#include "plenum/kernels/cuda/attention_backward_feed.cuh"
#include "plenum/kernels/cuda/attention_backward_state.cuh"
#include "plenum/kernels/cuda/attention_fragments.cuh"
#include "plenum/kernels/cuda/attention_keep_rows.cuh"
#include "plenum/kernels/cuda/attention_sm90.h"
#include "plenum/kernels/cuda/tensor_map.h"

namespace plenum::kernels::cuda {
namespace {

using Cursor = BackwardShape::Cursor;
using Plan = BackwardShape::Plan;
constexpr std::uint64_t kTile = kTileBytes >> 4;  // in a descriptor

/// One visit of a warpgroup: an owned block that walks over the streamed ones.
struct Visit {
  const AttentionItem& item;
  int num_blocks;
  int block;
  Cursor at;
  bool releases;
  bool completes;  ///< the last owned block of the phase
};

/// The first owned row, in the micro-batch.
__device__ inline int first_row(const Visit& visit) {
  return visit.item.start + visit.item.first + visit.block * kTileRows;
}

/// What a warpgroup finds in its own tiles.
struct Owned {
  BackwardShape::OwnedRing& barriers;
  BackwardShape::OwnedCursor at;
  std::uint32_t tiles[3];  ///< addresses
  const float* shifts;
};

/// Takes the columns from num_columns on out of a tile of weights.
__device__ inline void mask_columns(Accumulator& weights, int num_columns, int lane_in_quad) {
#pragma unroll
  for (int i = 0; i < 32; ++i)
    if (8 * (i / 4) + 2 * lane_in_quad + i % 2 >= num_columns) weights[i] = 0;
}

/// The statistics of a thread's two rows, which are queries.
struct RowStatistics {
  float shift[2];
  float delta[2];

  /// From dO and O as operands, of which all of a row is in one quad.
  __device__ RowStatistics(const float* shifts, const RegisterOperand& dout, const RegisterOperand& out,
                           const FragmentRows& rows) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      shift[i] = shifts[rows.row[i]];
      float sum = 0;
#pragma unroll
      for (int w = 0; w < 8; ++w) {
        const float2 a = unpack(dout[w / 2][2 * (w % 2) + i]);
        const float2 b = unpack(out[w / 2][2 * (w % 2) + i]);
        sum = fmaf(a.x, b.x, fmaf(a.y, b.y, sum));
      }
      sum += __shfl_xor_sync(0xFFFFFFFF, sum, 1);
      delta[i] = sum + __shfl_xor_sync(0xFFFFFFFF, sum, 2);
    }
  }

  /// For phase 2, to where it reads them; rows below num_rows only.
  __device__ void store(QueryStatistics* statistics, int num_rows, const FragmentRows& rows) const {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (rows.lane_in_quad == 0 && rows.row[i] < num_rows) statistics[rows.row[i]] = {shift[i], delta[i]};
  }
};

/// P = 2^(S scale_log2 + shift) in place, where rows are queries.
__device__ inline void to_weights_by_row(Accumulator& s, const RowStatistics& of, float scale_log2) {
#pragma unroll
  for (int i = 0; i < 32; ++i) s[i] = fast_exp2(fmaf(s[i], scale_log2, of.shift[i / 2 % 2]));
}

/// Dropout of the block at hand.
template <bool kHasDropout>
struct BlockDropout {
  float scale;
  std::uint32_t keep_bits[2] = {};

  /// F dP - D of the element at index i of an accumulator.
  __device__ float center(float dp, float delta, int i) const {
    if constexpr (kHasDropout) return fmaf(dp, is_kept(keep_bits, i) ? scale : 0.0F, -delta);
    return dp - delta;
  }
};

/// dS = P (F dP - D) in place of P, where rows are queries.
template <bool kHasDropout>
__device__ inline void to_gradient_by_row(Accumulator& s, const Accumulator& dp, const RowStatistics& of,
                                          const BlockDropout<kHasDropout>& dropout) {
#pragma unroll
  for (int i = 0; i < 32; ++i) s[i] *= dropout.center(dp[i], of.delta[i / 2 % 2], i);
}

/// Tells the producer that the statistics of this warp's queries of the item are written. By all its threads.
__device__ inline void announce_statistics(BackwardShared& shared) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) shared.statistics_written.arrive();
}

/// Phase 1 for one block of queries.
template <bool kHasDropout>
__device__ inline void queries_backward(const BackwardParameters& p, const Visit& visit, Owned& owned,
                                        BackwardShared& shared) {
  const FragmentRows rows = fragment_rows();
  const float scale_log2 = p.scale * kLog2OfE;
  const std::uint64_t keys = describe_tile(shared_address(shared.streamed[0][0]));
  const std::uint64_t values = describe_tile(shared_address(shared.streamed[1][0]));
  const KeepRows keep(p.keep, p.keep.by_query, visit.item.head, first_row(visit), rows);
  BlockDropout<kHasDropout> dropout{p.dropout_scale};
  Accumulator s, dp, dq;
  RegisterOperand dout, ds;
#pragma unroll
  for (int i = 0; i < 32; ++i) dq[i] = 0;
  owned.barriers.wait_full(owned.at);
  load_operand(owned.tiles[1], dout);
  load_operand(owned.tiles[2], ds);
  const RowStatistics statistics(owned.shifts, dout, ds, rows);
  const int first = visit.item.first + visit.block * kTileRows;
  const std::int64_t row = visit.item.start + first;
  const int num_rows = visit.item.length - first;
  statistics.store(p.statistics_HT + static_cast<std::int64_t>(visit.item.head) * p.num_rows + row, num_rows,
                   rows);
  if (visit.completes) announce_statistics(shared);
  const std::uint64_t own[2] = {describe_tile(owned.tiles[0]), describe_tile(owned.tiles[1])};
  const int num_last_columns = visit.item.length % kTileRows;
  const int masked_block = num_last_columns == 0 ? -1 : visit.num_blocks - 1;
  Cursor at = visit.at;
  for (int j = 0; j < visit.num_blocks; ++j, at.advance()) {
    shared.ring.wait_full(at);
    wgmma_fence();
    issue_product<TileB::Transposed>(s, own[0], keys + at.stage * kTile, 0);
    wgmma_commit();
    issue_product<TileB::Transposed>(dp, own[1], values + at.stage * kTile, 0);
    wgmma_commit();
    if constexpr (kHasDropout) keep.load(j, dropout.keep_bits);
    wgmma_wait<1>();
    hold(s);
    to_weights_by_row(s, statistics, scale_log2);
    hold(s);
    if (masked_block == j) mask_columns(s, num_last_columns, rows.lane_in_quad);
    wgmma_wait<0>();
    hold(dp);
    if (j == visit.num_blocks - 1) owned.barriers.release(owned.at);
    to_gradient_by_row(s, dp, statistics, dropout);
    to_operand(s, ds);
    wgmma_fence();
    issue_product<TileB::Plain>(dq, ds, keys + at.stage * kTile, 1);
    wgmma_commit();
    wgmma_wait<0>();
    hold(dq);
    if (visit.releases) shared.ring.release(at);
  }
  owned.at.advance();

  const float scale[2] = {p.scale, p.scale};
  const std::int64_t stride = 3LL * p.num_heads * kTileRows;
  store_rows(dq, scale, p.dqkv_T3HK + row * stride + column_of(p, 0, visit.item.head), stride, num_rows,
             rows);
}

/// The statistics of a block of queries that are the columns of a tile. Two neighbours per float4: shift,
/// delta, shift, delta.
__device__ inline const float4* column_statistics(const QueryStatistics (&of)[kTileRows], int lane_in_quad) {
  return reinterpret_cast<const float4*>(of) + lane_in_quad;
}

/// P in place of S, where columns are queries.
__device__ inline void to_weights_by_column(Accumulator& s, const float4* statistics, float scale_log2) {
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    const float4 of = statistics[4 * c];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      s[4 * c + 2 * i] = fast_exp2(fmaf(s[4 * c + 2 * i], scale_log2, of.x));
      s[4 * c + 2 * i + 1] = fast_exp2(fmaf(s[4 * c + 2 * i + 1], scale_log2, of.z));
    }
  }
}

/// dS in place of P, where columns are queries.
template <bool kHasDropout>
__device__ inline void to_gradient_by_column(Accumulator& s, const Accumulator& dp, const float4* statistics,
                                             const BlockDropout<kHasDropout>& dropout) {
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    const float4 of = statistics[4 * c];
#pragma unroll
    for (int i = 4 * c; i < 4 * c + 4; ++i) s[i] *= dropout.center(dp[i], i % 2 == 0 ? of.y : of.w, i);
  }
}

/// Phase 2 for one block of keys and values. Columns behind the sequence's end need no mask: queries, dO and
/// statistics are zeros there, so they add nothing.
template <bool kHasDropout>
__device__ inline void keys_backward(const BackwardParameters& p, const Visit& visit, Owned& owned,
                                     BackwardShared& shared) {
  const FragmentRows rows = fragment_rows();
  const float scale_log2 = p.scale * kLog2OfE;
  const std::uint64_t queries = describe_tile(shared_address(shared.streamed[0][0]));
  const std::uint64_t dout = describe_tile(shared_address(shared.streamed[1][0]));
  const KeepRows keep(p.keep, p.keep.by_key, visit.item.head, first_row(visit), rows);
  BlockDropout<kHasDropout> dropout{p.dropout_scale};
  Accumulator s, dp, dk, dv;
  RegisterOperand weights, ds;
#pragma unroll
  for (int i = 0; i < 32; ++i) dk[i] = dv[i] = 0;
  owned.barriers.wait_full(owned.at);
  const std::uint64_t own[2] = {describe_tile(owned.tiles[0]), describe_tile(owned.tiles[1])};
  Cursor at = visit.at;
  for (int j = 0; j < visit.num_blocks; ++j, at.advance()) {
    shared.ring.wait_full(at);
    wgmma_fence();
    issue_product<TileB::Transposed>(s, own[0], queries + at.stage * kTile, 0);
    wgmma_commit();
    issue_product<TileB::Transposed>(dp, own[1], dout + at.stage * kTile, 0);
    wgmma_commit();
    if constexpr (kHasDropout) keep.load(j, dropout.keep_bits);
    const float4* const statistics =
        column_statistics(shared.streamed_statistics[at.stage], rows.lane_in_quad);
    wgmma_wait<1>();
    hold(s);
    to_weights_by_column(s, statistics, scale_log2);
    hold(s);
    to_operand(s, weights);
    if constexpr (kHasDropout) drop(weights, dropout.keep_bits);
    wgmma_fence();
    issue_product<TileB::Plain>(dv, weights, dout + at.stage * kTile, 1);
    wgmma_commit();
    wgmma_wait<1>();
    hold(dp);
    if (j == visit.num_blocks - 1) owned.barriers.release(owned.at);
    to_gradient_by_column(s, dp, statistics, dropout);
    to_operand(s, ds);
    wgmma_fence();
    issue_product<TileB::Plain>(dk, ds, queries + at.stage * kTile, 1);
    wgmma_commit();
    wgmma_wait<0>();
    hold(dv);
    hold(dk);
    if (visit.releases) shared.ring.release(at);
  }
  owned.at.advance();

  const std::int64_t stride = 3LL * p.num_heads * kTileRows;
  const int first = visit.item.first + visit.block * kTileRows;
  __nv_bfloat16* const out = p.dqkv_T3HK + (visit.item.start + first) * stride;
  const float dk_scale[2] = {p.scale, p.scale};
  const float kept_scale = kHasDropout ? p.dropout_scale : 1;
  const float dv_scale[2] = {kept_scale, kept_scale};
  store_rows(dk, dk_scale, out + column_of(p, 1, visit.item.head), stride, visit.item.length - first, rows);
  store_rows(dv, dv_scale, out + column_of(p, 2, visit.item.head), stride, visit.item.length - first, rows);
}

template <BackwardLaunch kLaunch, bool kHasDropout>
__device__ inline void work(int warpgroup, const BackwardParameters& p, BackwardShared& shared) {
  WarpgroupWalk<BackwardShape::kStages, BackwardShape::kWarpgroups> walk{{warpgroup}};
  RingCursor<ItemQueue::kSlots> slot;
  Owned owned = {shared.owned[warpgroup],
                 {},
                 {shared_address(shared.own[warpgroup][0]), shared_address(shared.own[warpgroup][1]),
                  shared_address(shared.own[warpgroup][2])},
                 shared.own_shifts[warpgroup]};
  for (;;) {
    const AttentionItem item = shared.queue.pop(slot);
    if (item.length == 0) return;
    const Plan plan(item, kAttentionTileRows);
    if (has_phase1<kLaunch>()) {
      int num_left = walk.deal.count(plan);
      if (num_left == 0) announce_statistics(shared);
      walk.over(plan, shared.ring, [&](int block, const Cursor& at, bool releases) {
        queries_backward<kHasDropout>(p, {item, plan.num_streamed, block, at, releases, --num_left == 0},
                                      owned, shared);
      });
    }
    if (has_phase2<kLaunch>(item))
      walk.over(plan, shared.ring, [&](int block, const Cursor& at, bool releases) {
        keys_backward<kHasDropout>(p, {item, plan.num_streamed, block, at, releases, false}, owned, shared);
      });
  }
}

template <BackwardLaunch kLaunch, bool kHasDropout>
__global__ void __launch_bounds__(BackwardShape::kThreads, 1)
    attention_backward_kernel(const __grid_constant__ BackwardMaps maps,
                              const __grid_constant__ BackwardParameters p) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  BackwardShared& shared = *reinterpret_cast<BackwardShared*>(shared_bytes);
  if (threadIdx.x == 0) {
    shared.ring.init(1 + 32, 4 * BackwardShape::kWarpgroups);
    shared.queue.barriers.init(1, (4 + 1) * BackwardShape::kWarpgroups);
    for (BackwardShape::OwnedRing& owned : shared.owned) owned.init(1, 4);
    shared.statistics_written.init(4 * BackwardShape::kWarpgroups);
    fence_barrier_init();
  }
  __syncthreads();

  const int warpgroup = __shfl_sync(0xFFFFFFFF, threadIdx.x / 128, 0);
  if (warpgroup == BackwardShape::kWarpgroups) {
    shrink_registers<BackwardShape::kFeederRegisters>();
    feed<kLaunch>(maps, p, shared);
  } else {
    grow_registers<BackwardShape::kWorkerRegisters>();
    work<kLaunch, kHasDropout>(warpgroup, p, shared);
  }
}

template <BackwardLaunch kLaunch>
cudaError_t launch(const BackwardMaps& maps, const BackwardParameters& parameters, int num_multiprocessors,
                   cudaStream_t stream) {
  const auto kernel = parameters.keep.by_query != nullptr ? attention_backward_kernel<kLaunch, true>
                                                          : attention_backward_kernel<kLaunch, false>;
  if (cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(BackwardShared)))
    return error;
  kernel<<<num_multiprocessors, BackwardShape::kThreads, sizeof(BackwardShared), stream>>>(maps, parameters);
  return cudaGetLastError();
}

}  // namespace

std::size_t attention_scratch_bytes_sm90(std::int64_t num_rows, std::int64_t num_heads) {
  return static_cast<std::size_t>(num_rows * num_heads) * sizeof(QueryStatistics);
}

cudaError_t attention_backward_sm90(const AttentionArguments& args, cudaStream_t stream) {
  const std::int64_t width = static_cast<std::int64_t>(args.num_heads) * kTileRows;
  BackwardMaps maps;
  if (cudaError_t error = make_tensor_map(args.qkv_T3HK, args.num_rows, 3 * width, maps.qkv)) return error;
  if (cudaError_t error = make_tensor_map(args.context_THK, args.num_rows, width, maps.context)) return error;
  if (cudaError_t error = make_tensor_map(args.dcontext_THK, args.num_rows, width, maps.dcontext))
    return error;
  int device = 0, num_multiprocessors = 0;
  if (cudaError_t error = cudaGetDevice(&device)) return error;
  if (cudaError_t error =
          cudaDeviceGetAttribute(&num_multiprocessors, cudaDevAttrMultiProcessorCount, device))
    return error;

  const BackwardParameters parameters = {{args.tiles, args.num_tiles, args.next_item, args.num_heads},
                                         {args.gaps, args.num_gaps},
                                         args.lse_HT,
                                         args.dqkv_T3HK,
                                         static_cast<QueryStatistics*>(args.scratch),
                                         args.num_rows,
                                         args.num_heads,
                                         1 / std::sqrt(static_cast<float>(kTileRows)),
                                         args.keep,
                                         args.dropout_scale};
  if (cudaError_t error = launch<BackwardLaunch::First>(maps, parameters, num_multiprocessors, stream))
    return error;
  if (args.max_length > kAttentionTileRows)
    if (cudaError_t error = launch<BackwardLaunch::Second>(maps, parameters, num_multiprocessors, stream))
      return error;
  return cudaGetLastError();
}

}  // namespace plenum::kernels::cuda

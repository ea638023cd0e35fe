#include <cmath>

#include "plenum/kernels/cuda/attention_fragments.cuh"
#include "plenum/kernels/cuda/attention_gaps.cuh"
#include "plenum/kernels/cuda/attention_keep_rows.cuh"
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
//
// Two warpgroups with many registers each, so that each can issue the scores of the next block before it is
// done with this one.
constexpr int kWarpgroups = 2;
constexpr int kStages = 11;
constexpr int kFeederRegisters = 56;
constexpr int kWorkerRegisters = 224;
static_assert(registers_suffice(kWarpgroups, kFeederRegisters, kWorkerRegisters));
constexpr int kThreads = 128 * (kWarpgroups + 1);

constexpr float kLog2E = 1.4426950408889634F;
constexpr std::uint64_t kTile = kTileBytes >> 4;  // in a descriptor

using Ring = RingBarriers<kStages>;
using Cursor = RingCursor<kStages>;
using Plan = ItemPlan<kStages, kWarpgroups>;
using Deal = BlockDeal<kStages, kWarpgroups>;
using OwnedCursor = RingCursor<1>;

/// Of a query: what turns its scores into weights, P = 2^(S scale_log2 + shift), and its D = sum of dO * O.
struct QueryStatistics {
  float shift;
  float delta;
};

struct Shared {
  alignas(1024) unsigned char streamed[2][kStages][kTileBytes];  ///< keys and values, or queries and dO
  alignas(1024) unsigned char own[kWarpgroups][2][kTileBytes];   ///< the other way round
  alignas(16) QueryStatistics streamed_statistics[kStages][kTileRows];
  QueryStatistics own_statistics[kWarpgroups][kTileRows];
  Ring ring;
  RingBarriers<1> owned[kWarpgroups];
  ItemQueue queue;
  Mbarrier statistics_written;  ///< to global memory, of all queries of the item
};

/// Which phases a launch runs. A tile that is a whole sequence goes through both at once; of longer
/// sequences, phase 2 needs statistics of other tiles and waits for a second launch.
enum class Launch { First, Second };

struct Parameters {
  ItemSource items;
  GapList gaps;
  const __nv_bfloat16* context_THK;
  const __nv_bfloat16* dcontext_THK;
  const float* lse_HT;
  __nv_bfloat16* dqkv_T3HK;
  QueryStatistics* statistics_HT;
  int num_rows;
  int num_heads;
  float scale;  ///< 1 / sqrt K
  AttentionKeepBits keep;
  float dropout_scale;
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
        copy_8_bytes(&shared.streamed_statistics[at.stage][r], statistics + (is_valid ? r : 0), is_valid);
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

/// The statistics of 64 queries, two in each thread of a warp: rows lane and lane + 32.
__device__ inline void compute_statistics(const Parameters& p, const AttentionItem& item, int first,
                                          QueryStatistics (&statistics)[2]) {
  const int lane = threadIdx.x % 32;
  const int num_rows = item.length - first;
  const std::int64_t stride = static_cast<std::int64_t>(p.num_heads) * kTileRows;
  const std::int64_t begin = (item.start + first) * stride + item.head * kTileRows + 8 * (lane % 8);
  // Eight threads take a row of each, so four rows go at a time.
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll 2
    for (int step = 0; step < 8; ++step) {
      const int row = 32 * half + 4 * step + lane / 8;
      float delta = 0;
      if (row < num_rows)
        delta = dot_chunks(__ldg(reinterpret_cast<const uint4*>(p.context_THK + begin + row * stride)),
                           __ldg(reinterpret_cast<const uint4*>(p.dcontext_THK + begin + row * stride)));
      for (int distance = 1; distance < 8; distance *= 2)
        delta += __shfl_xor_sync(0xFFFFFFFF, delta, distance);
      delta = __shfl_sync(0xFFFFFFFF, delta, 8 * (lane % 4));
      if (lane / 4 == step) statistics[half].delta = delta;
    }
  const std::int64_t index = static_cast<std::int64_t>(item.head) * p.num_rows + item.start + first + lane;
#pragma unroll
  for (int i = 0; i < 2; ++i)
    if (lane + 32 * i < num_rows) {
      statistics[i].shift = -kLog2E * p.lse_HT[index + 32 * i];
      p.statistics_HT[index + 32 * i] = statistics[i];
    }
}

/// Fetches what a warpgroup owns, one block ahead. By all threads of a warp.
template <Launch kLaunch>
__device__ inline void serve(int warpgroup, const Maps& maps, const Parameters& p, Shared& shared) {
  const int lane = threadIdx.x % 32;
  RingBarriers<1>& owned = shared.owned[warpgroup];
  Deal deal{warpgroup};
  OwnedCursor at;
  RingCursor<ItemQueue::kSlots> slot;
  const auto load = [&](const CUtensorMap& map0, int column0, const CUtensorMap& map1, int column1, int row) {
    __syncwarp();
    if (lane == 0) {
      owned.full[0].arrive_expecting(2 * kTileBytes);
      copy_box(map0, shared.own[warpgroup][0], owned.full[0], column0, row);
      copy_box(map1, shared.own[warpgroup][1], owned.full[0], column1, row);
    }
    at.advance();
  };
  for (;;) {
    const AttentionItem item = shared.queue.pop(slot);
    if (item.length == 0) return;
    const Plan plan(item, kAttentionTileRows);
    if (has_phase1<kLaunch>()) {
      for (int block = deal.first(plan); block < plan.num_owned; block += kWarpgroups) {
        const int first = item.first + block * kTileRows;
        QueryStatistics statistics[2] = {};
        compute_statistics(p, item, first, statistics);
        owned.wait_empty(at);
        shared.own_statistics[warpgroup][lane] = statistics[0];
        shared.own_statistics[warpgroup][lane + 32] = statistics[1];
        load(maps.qkv, column_of(p, 0, item.head), maps.dcontext, item.head * kTileRows, item.start + first);
      }
      __syncwarp();
      if (lane == 0) shared.statistics_written.arrive();
      deal.pass(plan);
    }
    if (has_phase2<kLaunch>(item)) {
      for (int block = deal.first(plan); block < plan.num_owned; block += kWarpgroups) {
        owned.wait_empty(at);
        load(maps.qkv, column_of(p, 1, item.head), maps.qkv, column_of(p, 2, item.head),
             item.start + item.first + block * kTileRows);
      }
      deal.pass(plan);
    }
  }
}

/// One visit of a warpgroup: an owned block that walks over the streamed ones.
struct Visit {
  const AttentionItem& item;
  int num_blocks;
  int block;
  Cursor at;
  bool releases;
};

/// The first owned row, in the micro-batch.
__device__ inline int first_row(const Visit& visit) {
  return visit.item.start + visit.item.first + visit.block * kTileRows;
}

/// What a warpgroup finds in its own tiles.
struct Owned {
  RingBarriers<1>& barriers;
  OwnedCursor at;
  std::uint32_t tiles[2];  ///< addresses
  const QueryStatistics* statistics;
};

/// Takes the columns from num_columns on out of a tile of weights.
__device__ inline void mask_columns(Accumulator& weights, int num_columns, int lane_in_quad) {
#pragma unroll
  for (int i = 0; i < 32; ++i)
    if (8 * (i / 4) + 2 * lane_in_quad + i % 2 >= num_columns) weights[i] = 0;
}

/// The statistics of a thread's two rows.
struct RowStatistics {
  float shift[2];
  float delta[2];

  __device__ RowStatistics(const QueryStatistics* of, const FragmentRows& rows) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const QueryStatistics query = of[rows.row[i]];
      shift[i] = query.shift;
      delta[i] = query.delta;
    }
  }
};

/// P = 2^(S scale_log2 + shift) in place, where rows are queries.
__device__ inline void to_weights_by_row(Accumulator& s, const RowStatistics& of, float scale_log2) {
#pragma unroll
  for (int i = 0; i < 32; ++i) s[i] = fast_exp2(fmaf(s[i], scale_log2, of.shift[i / 2 % 2]));
}

/// dS = P (dP - D) in place of P, where rows are queries.
__device__ inline void to_gradient_by_row(Accumulator& s, const Accumulator& dp, const RowStatistics& of) {
#pragma unroll
  for (int i = 0; i < 32; ++i) s[i] *= dp[i] - of.delta[i / 2 % 2];
}

/// dP = F dP: what was dropped has no gradient, what was kept was scaled.
__device__ inline void drop_gradient(Accumulator& dp, const std::uint32_t (&bits)[2], float dropout_scale) {
#pragma unroll
  for (int i = 0; i < 32; ++i) dp[i] *= is_kept(bits, i) ? dropout_scale : 0.0F;
}

/// Phase 1 for one block of queries.
template <bool kHasDropout>
__device__ inline void queries_backward(const Parameters& p, const Visit& visit, Owned& owned,
                                        Shared& shared) {
  const FragmentRows rows = fragment_rows();
  const float scale_log2 = p.scale * kLog2E;
  const std::uint64_t keys = describe_tile(shared_address(shared.streamed[0][0]));
  const std::uint64_t values = describe_tile(shared_address(shared.streamed[1][0]));
  const KeepRows keep(p.keep, p.keep.by_query, visit.item.head, first_row(visit), rows);
  std::uint32_t keep_bits[2];
  Accumulator s, dp, dq;
  RegisterOperand own[2], ds;
#pragma unroll
  for (int i = 0; i < 32; ++i) dq[i] = 0;
  const auto issue_scores = [&](const Cursor& of) {
    issue_product<TileB::Transposed>(s, own[0], keys + of.stage * kTile, 0);
    wgmma_commit();
    issue_product<TileB::Transposed>(dp, own[1], values + of.stage * kTile, 0);
  };
  const auto issue_sums = [&](const Cursor& of) {
    issue_product<TileB::Plain>(dq, ds, keys + of.stage * kTile, 1);
    wgmma_commit();
  };

  owned.barriers.wait_full(owned.at);
  const RowStatistics statistics(owned.statistics, rows);
  load_operand(owned.tiles[0], own[0]);
  load_operand(owned.tiles[1], own[1]);
  owned.barriers.release(owned.at);
  owned.at.advance();
  const int num_last_columns = visit.item.length % kTileRows;
  const int masked_block = num_last_columns == 0 ? -1 : visit.num_blocks - 1;
  Cursor at = visit.at;
  shared.ring.wait_full(at);
  wgmma_fence();
  issue_scores(at);
  wgmma_commit();
  if constexpr (kHasDropout) keep.load(0, keep_bits);
  wgmma_wait<0>();
  hold(s);
  hold(dp);
  to_weights_by_row(s, statistics, scale_log2);
  if (masked_block == 0) mask_columns(s, num_last_columns, rows.lane_in_quad);
  if constexpr (kHasDropout) drop_gradient(dp, keep_bits, p.dropout_scale);
  to_gradient_by_row(s, dp, statistics);
  to_operand(s, ds);

  // While the tensor cores compute dP of a block and add dQ of the one before, its scores become weights.
  for (int j = 1; j < visit.num_blocks; ++j) {
    Cursor next = at;
    next.advance();
    shared.ring.wait_full(next);
    wgmma_fence();
    issue_scores(next);
    issue_sums(at);
    if constexpr (kHasDropout) keep.load(j, keep_bits);
    wgmma_wait<1>();
    hold(s);
    to_weights_by_row(s, statistics, scale_log2);
    hold(s);
    if (masked_block == j) mask_columns(s, num_last_columns, rows.lane_in_quad);
    wgmma_wait<0>();
    hold(dp);
    hold(dq);
    if (visit.releases) shared.ring.release(at);
    if constexpr (kHasDropout) drop_gradient(dp, keep_bits, p.dropout_scale);
    to_gradient_by_row(s, dp, statistics);
    to_operand(s, ds);
    at = next;
  }
  wgmma_fence();
  issue_sums(at);
  wgmma_wait<0>();
  hold(dq);
  if (visit.releases) shared.ring.release(at);

  const float scale[2] = {p.scale, p.scale};
  const std::int64_t stride = 3LL * p.num_heads * kTileRows;
  const int first = visit.item.first + visit.block * kTileRows;
  store_rows(dq, scale, p.dqkv_T3HK + (visit.item.start + first) * stride + column_of(p, 0, visit.item.head),
             stride, visit.item.length - first, rows);
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
__device__ inline void to_gradient_by_column(Accumulator& s, const Accumulator& dp,
                                             const float4* statistics) {
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    const float4 of = statistics[4 * c];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      s[4 * c + 2 * i] *= dp[4 * c + 2 * i] - of.y;
      s[4 * c + 2 * i + 1] *= dp[4 * c + 2 * i + 1] - of.w;
    }
  }
}

/// Rounds weights to an operand, without those that are dropped.
template <bool kHasDropout>
__device__ inline void to_kept_operand(const Accumulator& weights, const std::uint32_t (&bits)[2],
                                       RegisterOperand& operand) {
  if constexpr (kHasDropout) {
    Accumulator kept;
#pragma unroll
    for (int i = 0; i < 32; ++i) kept[i] = is_kept(bits, i) ? weights[i] : 0.0F;
    to_operand(kept, operand);
  } else {
    to_operand(weights, operand);
  }
}

/// Phase 2 for one block of keys and values.
template <bool kHasDropout>
__device__ inline void keys_backward(const Parameters& p, const Visit& visit, Owned& owned, Shared& shared) {
  const FragmentRows rows = fragment_rows();
  const float scale_log2 = p.scale * kLog2E;
  const std::uint64_t queries = describe_tile(shared_address(shared.streamed[0][0]));
  const std::uint64_t dout = describe_tile(shared_address(shared.streamed[1][0]));
  const KeepRows keep(p.keep, p.keep.by_key, visit.item.head, first_row(visit), rows);
  std::uint32_t keep_bits[2];
  Accumulator s, dp, dk, dv;
  RegisterOperand own[2], weights, ds;
#pragma unroll
  for (int i = 0; i < 32; ++i) dk[i] = dv[i] = 0;
  const auto issue_scores = [&](const Cursor& of) {
    issue_product<TileB::Transposed>(s, own[0], queries + of.stage * kTile, 0);
    wgmma_commit();
    issue_product<TileB::Transposed>(dp, own[1], dout + of.stage * kTile, 0);
  };
  const auto issue_sums = [&](const Cursor& of) {
    issue_product<TileB::Plain>(dv, weights, dout + of.stage * kTile, 1);
    issue_product<TileB::Plain>(dk, ds, queries + of.stage * kTile, 1);
    wgmma_commit();
  };
  const auto statistics_of = [&](const Cursor& of) {
    return column_statistics(shared.streamed_statistics[of.stage], rows.lane_in_quad);
  };

  owned.barriers.wait_full(owned.at);
  load_operand(owned.tiles[0], own[0]);
  load_operand(owned.tiles[1], own[1]);
  owned.barriers.release(owned.at);
  owned.at.advance();
  const int num_last_columns = visit.item.length % kTileRows;
  const int masked_block = num_last_columns == 0 ? -1 : visit.num_blocks - 1;
  Cursor at = visit.at;
  shared.ring.wait_full(at);
  wgmma_fence();
  issue_scores(at);
  wgmma_commit();
  if constexpr (kHasDropout) keep.load(0, keep_bits);
  wgmma_wait<0>();
  hold(s);
  hold(dp);
  to_weights_by_column(s, statistics_of(at), scale_log2);
  if (masked_block == 0) mask_columns(s, num_last_columns, rows.lane_in_quad);
  to_kept_operand<kHasDropout>(s, keep_bits, weights);
  if constexpr (kHasDropout) drop_gradient(dp, keep_bits, p.dropout_scale);
  to_gradient_by_column(s, dp, statistics_of(at));
  to_operand(s, ds);

  // While the tensor cores compute dP^T of a block and add dV and dK of the one before, its scores become
  // weights.
  for (int j = 1; j < visit.num_blocks; ++j) {
    Cursor next = at;
    next.advance();
    shared.ring.wait_full(next);
    wgmma_fence();
    issue_scores(next);
    issue_sums(at);
    if constexpr (kHasDropout) keep.load(j, keep_bits);
    wgmma_wait<1>();
    hold(s);
    to_weights_by_column(s, statistics_of(next), scale_log2);
    hold(s);
    if (masked_block == j) mask_columns(s, num_last_columns, rows.lane_in_quad);
    wgmma_wait<0>();
    hold(dp);
    hold(dv);
    hold(dk);
    if (visit.releases) shared.ring.release(at);
    to_kept_operand<kHasDropout>(s, keep_bits, weights);
    if constexpr (kHasDropout) drop_gradient(dp, keep_bits, p.dropout_scale);
    to_gradient_by_column(s, dp, statistics_of(next));
    to_operand(s, ds);
    at = next;
  }
  wgmma_fence();
  issue_sums(at);
  wgmma_wait<0>();
  hold(dv);
  hold(dk);
  if (visit.releases) shared.ring.release(at);

  const std::int64_t stride = 3LL * p.num_heads * kTileRows;
  const int first = visit.item.first + visit.block * kTileRows;
  __nv_bfloat16* const out = p.dqkv_T3HK + (visit.item.start + first) * stride;
  const float dk_scale[2] = {p.scale, p.scale};
  const float kept_scale = kHasDropout ? p.dropout_scale : 1;
  const float dv_scale[2] = {kept_scale, kept_scale};
  store_rows(dk, dk_scale, out + column_of(p, 1, visit.item.head), stride, visit.item.length - first, rows);
  store_rows(dv, dv_scale, out + column_of(p, 2, visit.item.head), stride, visit.item.length - first, rows);
}

template <Launch kLaunch, bool kHasDropout>
__device__ inline void work(int warpgroup, const Parameters& p, Shared& shared) {
  WarpgroupWalk<kStages, kWarpgroups> walk{{warpgroup}};
  RingCursor<ItemQueue::kSlots> slot;
  Owned owned = {shared.owned[warpgroup],
                 {},
                 {shared_address(shared.own[warpgroup][0]), shared_address(shared.own[warpgroup][1])},
                 shared.own_statistics[warpgroup]};
  for (;;) {
    const AttentionItem item = shared.queue.pop(slot);
    if (item.length == 0) return;
    const Plan plan(item, kAttentionTileRows);
    if (has_phase1<kLaunch>())
      walk.over(plan, shared.ring, [&](int block, const Cursor& at, bool releases) {
        queries_backward<kHasDropout>(p, {item, plan.num_streamed, block, at, releases}, owned, shared);
      });
    if (has_phase2<kLaunch>(item))
      walk.over(plan, shared.ring, [&](int block, const Cursor& at, bool releases) {
        keys_backward<kHasDropout>(p, {item, plan.num_streamed, block, at, releases}, owned, shared);
      });
  }
}

/// The warpgroup that does not compute: warp 0 produces, one warp for each other warpgroup is its valet, the
/// last writes zeros.
template <Launch kLaunch>
__device__ inline void feed(const Maps& maps, const Parameters& p, Shared& shared) {
  const int warp = threadIdx.x / 32 % 4;
  if (warp == 0)
    produce<kLaunch>(maps, p, shared);
  else if (warp <= kWarpgroups)
    serve<kLaunch>(warp - 1, maps, p, shared);
  else if (kLaunch == Launch::First)
    p.gaps.zero(p.dqkv_T3HK, 3 * p.num_heads * kTileRows, threadIdx.x % 32, 32);
}

template <Launch kLaunch, bool kHasDropout>
__global__ void __launch_bounds__(kThreads, 1)
    attention_backward_kernel(const __grid_constant__ Maps maps, const __grid_constant__ Parameters p) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  Shared& shared = *reinterpret_cast<Shared*>(shared_bytes);
  if (threadIdx.x == 0) {
    shared.ring.init(1 + 32, 4 * kWarpgroups);
    shared.queue.barriers.init(1, (4 + 1) * kWarpgroups);
    for (RingBarriers<1>& owned : shared.owned) owned.init(1, 4);
    shared.statistics_written.init(kWarpgroups);
    fence_barrier_init();
  }
  __syncthreads();

  const int warpgroup = __shfl_sync(0xFFFFFFFF, threadIdx.x / 128, 0);
  if (warpgroup == kWarpgroups) {
    shrink_registers<kFeederRegisters>();
    feed<kLaunch>(maps, p, shared);
  } else {
    grow_registers<kWorkerRegisters>();
    work<kLaunch, kHasDropout>(warpgroup, p, shared);
  }
}

template <Launch kLaunch>
cudaError_t launch(const Maps& maps, const Parameters& parameters, int num_multiprocessors,
                   cudaStream_t stream) {
  const auto kernel = parameters.keep.by_query != nullptr ? attention_backward_kernel<kLaunch, true>
                                                          : attention_backward_kernel<kLaunch, false>;
  if (cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared)))
    return error;
  kernel<<<num_multiprocessors, kThreads, sizeof(Shared), stream>>>(maps, parameters);
  return cudaGetLastError();
}

}  // namespace

std::size_t attention_scratch_bytes_sm90(std::int64_t num_rows, std::int64_t num_heads) {
  return static_cast<std::size_t>(num_rows * num_heads) * sizeof(QueryStatistics);
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

  const Parameters parameters = {{args.tiles, args.num_tiles, args.next_item, args.num_heads},
                                 {args.gaps, args.num_gaps},
                                 args.context_THK,
                                 args.dcontext_THK,
                                 args.lse_HT,
                                 args.dqkv_T3HK,
                                 static_cast<QueryStatistics*>(args.scratch),
                                 args.num_rows,
                                 args.num_heads,
                                 1 / std::sqrt(static_cast<float>(kTileRows)),
                                 args.keep,
                                 args.dropout_scale};
  if (cudaError_t error = launch<Launch::First>(maps, parameters, num_multiprocessors, stream)) return error;
  if (args.max_length > kAttentionTileRows)
    if (cudaError_t error = launch<Launch::Second>(maps, parameters, num_multiprocessors, stream))
      return error;
  return cudaGetLastError();
}

}  // namespace plenum::kernels::cuda

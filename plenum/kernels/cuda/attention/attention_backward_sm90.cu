#include <algorithm>
#include <cmath>

#include "plenum/kernels/cuda/attention/attention_backward_feed.cuh"
#include "plenum/kernels/cuda/attention/attention_backward_state.cuh"
#include "plenum/kernels/cuda/attention/attention_fragments.cuh"
#include "plenum/kernels/cuda/attention/attention_keep_rows.cuh"
#include "plenum/kernels/cuda/attention/attention_sm90.h"
#include "plenum/kernels/cuda/device/tensor_map.h"
#include "plenum/kernels/cuda/device/warpgroup.cuh"

namespace plenum::kernels::cuda {
namespace {

// Products and sums leave no registers over the loop over blocks of queries: what some blocks alone need of a
// thread's index, or what is needed before and behind the loop, is computed there from an index read anew.

/// Where a warpgroup is. All three go through the same items, rounds and blocks of queries.
struct Progress {
  int warpgroup;
  BackwardShape::OwnedCursor owned = {};
  BackwardShape::ExchangeCursor exchanged = {};
  BackwardShape::Cursor streamed = {};
};

/// A round of an item.
struct Round {
  const AttentionItem& item;
  KeyRounds rounds;
  int index;
  int num_keys;  ///< blocks of keys, each owned by a warpgroup

  __device__ Round(const AttentionItem& of, const KeyRounds& rounds_of, int round)
      : item(of), rounds(rounds_of), index(round), num_keys(rounds_of.count(round)) {}
};

/// The warpgroup whose turn it is to compute dQ, from one block of queries to the next.
struct Turn {
  int first;
  int warpgroup;

  __device__ explicit Turn(int num_keys)
      : first(num_keys == BackwardShape::kWarpgroups ? 0 : num_keys), warpgroup(first) {}
  __device__ void advance() {
    if (++warpgroup == BackwardShape::kWarpgroups) warpgroup = first;
  }
};

/// Adds the round's part of dQ of a block of queries, from dS of all warpgroups with keys.
__device__ inline void sum_queries_gradient(const BackwardParameters& p, const Round& round, int block,
                                            const Progress& at,
                                            const BackwardShape::ExchangeCursor& exchanged,
                                            BackwardShared& shared) {
  constexpr std::uint64_t kTile = kTileBytes >> 4;
  const int thread = reread_thread();
  float4* const kept = p.scratch.dqueries_of(block) + thread % 128;
  float4 before[BackwardScratch::kVectors] = {};
  // Another warpgroup may have written it a round ago. It then released a stage of queries, which the
  // producer filled again, and this warpgroup has waited for that stage or a later one: which orders both as
  // long as a round has more blocks of queries than the ring has stages. Where there are several rounds,
  // these are more than kWarpgroups.
  static_assert(BackwardShape::kStages <= BackwardShape::kWarpgroups);
  if (round.index > 0)
#pragma unroll
    for (int v = 0; v < BackwardScratch::kVectors; ++v) before[v] = kept[128 * v];
  Accumulator dq;
#pragma unroll
  for (int i = 0; i < 32; ++i) dq[i] = 0;
  const std::uint64_t ds = describe_tile(shared_address(shared.dscores[exchanged.stage][0]));
  const std::uint64_t keys = describe_tile(shared_address(shared.keys[at.owned.stage][0]));
  shared.exchanged.wait_full(exchanged);
  hold(dq);
#pragma unroll 1
  for (int w = 0; w < round.num_keys; ++w) {
    wgmma_fence();
    issue_product<TileB::Plain, TileA::Transposed>(dq, ds + w * kTile, keys + w * kTile, 1);
    wgmma_commit();
  }
  wgmma_wait<0>();
  hold(dq);
#pragma unroll
  for (int v = 0; v < BackwardScratch::kVectors; ++v) {
    dq[4 * v] += before[v].x;
    dq[4 * v + 1] += before[v].y;
    dq[4 * v + 2] += before[v].z;
    dq[4 * v + 3] += before[v].w;
  }

  if (round.index + 1 < round.rounds.num_rounds) {
    shared.exchanged.release(exchanged);
#pragma unroll
    for (int v = 0; v < BackwardScratch::kVectors; ++v)
      kept[128 * v] = {dq[4 * v], dq[4 * v + 1], dq[4 * v + 2], dq[4 * v + 3]};
    return;
  }
  const AttentionItem& item = round.item;
  const int first = block * kTileRows;
  const std::int64_t stride = 3LL * p.num_heads * kTileRows;
  const float kept_scale = p.scale * p.dropout_scale;
  const float scale[2] = {kept_scale, kept_scale};
  __nv_bfloat16* const out = p.dqkv_T3HK + (item.start + first) * stride + column_of(p, 0, item.head);
  sync_warpgroup(at.warpgroup);  // which has read all dS
  store_rows(dq, scale, shared.dscores[exchanged.stage][0], out, stride, item.length - first, thread);
  shared.exchanged.release(exchanged);
}

/// Passes the block of queries by, without keys.
__device__ inline void pass_by(const Progress& at, BackwardShared& shared) {
  shared.streamed.wait_full(at.streamed);
  shared.has_statistics[at.streamed.stage].wait(at.streamed.parity);
  shared.streamed.release(at.streamed);
  shared.exchanged.wait_empty(at.exchanged);
  shared.exchanged.full[at.exchanged.stage].arrive();
}

/// Fills the columns of a tile with what belongs to them.
__device__ inline void fill_columns(Accumulator& d, const float (&values)[kTileRows], int lane_in_quad) {
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    const float2 of = reinterpret_cast<const float2*>(values)[4 * c + lane_in_quad];
    d[4 * c] = d[4 * c + 2] = of.x;
    d[4 * c + 1] = d[4 * c + 3] = of.y;
  }
}

/// Sets the rows of an operand from num_rows on to zero.
__device__ inline void clear_rows(RegisterOperand& a, int num_rows, const FragmentRows& rows) {
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (rows.row[i % 2] >= num_rows) a[i / 4][i % 4] = 0;
}

/// Replaces weights P by dS / f, with dP and centers - D / f of columns: P (dP - D / f) where a weight is
/// kept, P (- D / f) where it is dropped.
__device__ inline void differentiate_scores(Accumulator& p, const Accumulator& dp,
                                            const float (&centers)[kTileRows], int lane_in_quad,
                                            const std::uint32_t (&keep_bits)[2]) {
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const float dropped = p[i] * centers[8 * (i / 4) + 2 * lane_in_quad + i % 2];
    p[i] = is_kept(keep_bits, i) ? fmaf(p[i], dp[i], dropped) : dropped;
  }
}

/// The gradients of a block of keys and values.
struct KeyGradients {
  Accumulator dk, dv;
};

/// Adds what a block of queries gives to the gradients of a block of num_keys keys, and shows its dS to the
/// others. Columns behind the sequence's end need no mask: queries, dO and statistics are zeros there, so
/// they add nothing. Rows behind it have a weight that may not be finite, which must not meet the zeros of
/// the keys.
template <bool kHasDropout>
__device__ inline void differentiate(const BackwardParameters& p, int block, int num_keys,
                                     const KeepRows& keep, const Progress& at, KeyGradients& sums,
                                     BackwardShared& shared) {
  const FragmentRows rows = fragment_rows();
  const float scale_log2 = p.scale * kLog2OfE;
  const int stage = at.streamed.stage;
  const std::uint64_t keys = describe_tile(shared_address(shared.keys[at.owned.stage][at.warpgroup]));
  const std::uint64_t values = describe_tile(shared_address(shared.values[at.owned.stage][at.warpgroup]));
  const std::uint64_t queries = describe_tile(shared_address(shared.queries[stage]));
  const std::uint64_t dout = describe_tile(shared_address(shared.dcontext[stage]));
  std::uint32_t keep_bits[2];
  Accumulator s, dp;
  RegisterOperand weights, ds;
  shared.has_statistics[stage].wait(at.streamed.parity);
  fill_columns(s, shared.shifts[stage], rows.lane_in_quad);
  if constexpr (!kHasDropout) fill_columns(dp, shared.centers[stage], rows.lane_in_quad);
  shared.streamed.wait_full(at.streamed);
  hold(s);
  hold(dp);
  wgmma_fence();
  issue_product<TileB::Transposed>(s, keys, queries, 1);
  wgmma_commit();
  issue_product<TileB::Transposed>(dp, values, dout, kHasDropout ? 0 : 1);
  wgmma_commit();
  if constexpr (kHasDropout) keep.load(p.keep, block, keep_bits);
  wgmma_wait<1>();
  hold(s);
#pragma unroll
  for (int i = 0; i < 32; ++i) s[i] = fast_exp2(s[i] * scale_log2);
  hold(s);
  to_operand(s, weights);
  if constexpr (kHasDropout) drop(weights, keep_bits);
  wgmma_fence();
  issue_product<TileB::Plain>(sums.dv, weights, dout, 1);
  wgmma_commit();
  wgmma_wait<1>();
  hold(dp);
  if constexpr (kHasDropout) {
    differentiate_scores(s, dp, shared.centers[stage], rows.lane_in_quad, keep_bits);
  } else {
#pragma unroll
    for (int i = 0; i < 32; ++i) s[i] *= dp[i];
  }
  to_operand(s, ds);
  if (num_keys < kTileRows) clear_rows(ds, num_keys, fragment_rows(reread_thread()));
  wgmma_fence();
  issue_product<TileB::Plain>(sums.dk, ds, queries, 1);
  wgmma_commit();
  shared.exchanged.wait_empty(at.exchanged);
  store_operand(shared_address(shared.dscores[at.exchanged.stage][at.warpgroup]), ds);
  fence_shared_writes();
  shared.exchanged.full[at.exchanged.stage].arrive();
  wgmma_wait<0>();
  hold(sums.dv);
  hold(sums.dk);
  shared.streamed.release(at.streamed);
}

/// Calls visit for each block of queries; in between computes dQ where it is this warpgroup's turn.
template <typename Visit>
__device__ inline void walk(const BackwardParameters& p, const Round& round, Progress& at,
                            BackwardShared& shared, Visit visit) {
  Turn turn(round.num_keys);
  BackwardShape::ExchangeCursor lagging = at.exchanged;
  const int num_blocks = round.rounds.num_blocks;
  for (int block = 0; block < num_blocks + BackwardShape::kLag; ++block) {
    if (block >= BackwardShape::kLag) {
      if (turn.warpgroup == at.warpgroup)
        sum_queries_gradient(p, round, block - BackwardShape::kLag, at, lagging, shared);
      turn.advance();
      lagging.advance();
    }
    if (block < num_blocks) {
      visit(block);
      at.streamed.advance();
      at.exchanged.advance();
    }
  }
}

/// A round of a warpgroup that owns a block of keys and values.
template <bool kHasDropout>
__device__ inline void own_keys(const BackwardParameters& p, const Round& round, Progress& at,
                                BackwardShared& shared) {
  const AttentionItem& item = round.item;
  const int first = (round.rounds.first(round.index) + at.warpgroup) * kTileRows;
  const KeepRows keep(p.keep, p.keep.by_key, item.head, item.start + first, fragment_rows(reread_thread()));
  KeyGradients sums;
#pragma unroll
  for (int i = 0; i < 32; ++i) sums.dk[i] = sums.dv[i] = 0;
  walk(p, round, at, shared,
       [&](int block) { differentiate<kHasDropout>(p, block, item.length - first, keep, at, sums, shared); });

  const std::int64_t stride = 3LL * p.num_heads * kTileRows;
  __nv_bfloat16* const out = p.dqkv_T3HK + (item.start + first) * stride;
  const float dk_scale[2] = {p.scale * p.dropout_scale, p.scale * p.dropout_scale};
  const float dv_scale[2] = {p.dropout_scale, p.dropout_scale};
  const int thread = reread_thread();
  unsigned char* const through = shared.values[at.owned.stage][at.warpgroup];
  sync_warpgroup(at.warpgroup);  // which has read the values
  store_rows(sums.dk, dk_scale, through, out + column_of(p, 1, item.head), stride, item.length - first,
             thread);
  store_rows(sums.dv, dv_scale, through, out + column_of(p, 2, item.head), stride, item.length - first,
             thread);
  fence_shared_writes();  // before the copy engine's
  shared.owned.release(at.owned);
}

template <bool kHasDropout>
__device__ inline void work(int warpgroup, const BackwardParameters& p, BackwardShared& shared) {
  Progress at{warpgroup};
  RingCursor<ItemQueue::kSlots> slot;
  for (;;) {
    const AttentionItem item = shared.queue.pop(slot);
    if (item.length == 0) return;
    const KeyRounds rounds(item.length);
    for (int index = 0; index < rounds.num_rounds; ++index, at.owned.advance()) {
      const Round round(item, rounds, index);
      shared.owned.wait_full(at.owned);
      if (warpgroup < round.num_keys) {
        own_keys<kHasDropout>(p, round, at, shared);
      } else {
        walk(p, round, at, shared, [&](int) { pass_by(at, shared); });
        shared.owned.release(at.owned);
      }
    }
  }
}

template <bool kHasDropout>
__global__ void __launch_bounds__(BackwardShape::kThreads, 1)
    attention_backward_kernel(const __grid_constant__ BackwardMaps maps,
                              const __grid_constant__ BackwardParameters p) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  BackwardShared& shared = *reinterpret_cast<BackwardShared*>(shared_bytes);
  constexpr int kWorkers = 128 * BackwardShape::kWarpgroups;
  constexpr int kStatisticsThreads = 32 * BackwardShape::kStatisticsWarps;
  if (threadIdx.x == 0) {
    shared.owned.init(1, kWorkers);
    shared.streamed.init(1, kWorkers);
    for (Mbarrier& barrier : shared.has_statistics) barrier.init(kStatisticsThreads);
    shared.outputs.init(1, kStatisticsThreads);
    shared.exchanged.init(kWorkers, 128);
    shared.queue.barriers.init(1, kWorkers + kStatisticsThreads);
    fence_barrier_init();
  }
  __syncthreads();

  const int warpgroup = __shfl_sync(0xFFFFFFFF, threadIdx.x / 128, 0);
  if (warpgroup == BackwardShape::kWarpgroups) {
    shrink_registers<BackwardShape::kFeederRegisters>();
    feed(maps, p, shared);
  } else {
    grow_registers<BackwardShape::kWorkerRegisters>();
    work<kHasDropout>(warpgroup, p, shared);
  }
}

}  // namespace

cudaError_t attention_backward_sm90(const AttentionArguments& args, cudaStream_t stream) {
  const std::int64_t width = static_cast<std::int64_t>(args.num_heads) * kTileRows;
  BackwardMaps maps;
  if (cudaError_t error = make_tensor_map(args.qkv_T3HK, args.num_rows, 3 * width, maps.qkv)) return error;
  if (cudaError_t error = make_tensor_map(args.context_THK, args.num_rows, width, maps.context)) return error;
  if (cudaError_t error = make_tensor_map(args.dcontext_THK, args.num_rows, width, maps.dcontext))
    return error;

  const int max_blocks = static_cast<int>(num_blocks_sm90(args.max_length));
  auto* const dqueries = static_cast<float4*>(args.scratch);
  auto* const statistics = reinterpret_cast<float2*>(
      dqueries + std::int64_t{kMaxThreadBlocksSm90} * max_blocks * BackwardScratch::kVectors * 128);
  const BackwardParameters parameters = {{args.tiles, args.num_tiles, args.next_item, args.num_heads},
                                         {args.gaps, args.num_gaps},
                                         args.lse_HT,
                                         args.dqkv_T3HK,
                                         args.num_rows,
                                         args.num_heads,
                                         1 / std::sqrt(static_cast<float>(kTileRows)),
                                         args.keep,
                                         args.dropout_scale,
                                         {dqueries, statistics, max_blocks}};
  const auto kernel =
      args.keep.by_key != nullptr ? attention_backward_kernel<true> : attention_backward_kernel<false>;
  if (cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(BackwardShared)))
    return error;
  kernel<<<std::min(args.num_multiprocessors, kMaxThreadBlocksSm90), BackwardShape::kThreads,
           sizeof(BackwardShared), stream>>>(maps, parameters);
  return cudaGetLastError();
}

}  // namespace plenum::kernels::cuda

#include <cmath>

#include "plenum/kernels/cuda/attention/attention_fragments.cuh"
#include "plenum/kernels/cuda/attention/attention_gaps.cuh"
#include "plenum/kernels/cuda/attention/attention_keep_rows.cuh"
#include "plenum/kernels/cuda/attention/attention_sm90.h"
#include "plenum/kernels/cuda/attention/attention_stream.cuh"
#include "plenum/kernels/cuda/device/tensor_map.h"

namespace plenum::kernels::cuda {
namespace {

// Queries are owned, keys and values streamed; see attention_stream.cuh. For each block of 64 keys a
// warpgroup computes S = Q K^T, the softmax so far, and O += P V. Four warpgroups share the sequences of 512
// tokens evenly.
constexpr int kWarpgroups = 4;
constexpr int kStages = 10;
constexpr int kFeederRegisters = 24;
constexpr int kWorkerRegisters = 112;
static_assert(registers_suffice(kWarpgroups, kFeederRegisters, kWorkerRegisters));
constexpr int kThreads = 128 * (kWarpgroups + 1);

using Ring = RingBarriers<kStages>;
using Cursor = RingCursor<kStages>;
using Plan = ItemPlan<kStages, kWarpgroups>;
using OwnedRing = RingBarriers<kWarpgroups>;
using OwnedCursor = RingCursor<kWarpgroups>;

struct Shared {
  alignas(1024) unsigned char keys[kStages][kTileBytes];
  alignas(1024) unsigned char values[kStages][kTileBytes];
  alignas(1024) unsigned char queries[kWarpgroups][kTileBytes];
  alignas(1024) unsigned char outputs[kWarpgroups][kTileBytes];  ///< on their way
  Ring ring;
  OwnedRing owned;  ///< of the queries of each warpgroup
  ItemQueue queue;
};
static_assert(sizeof(Shared) <= kMostSharedBytes);

struct Parameters {
  ItemSource items;
  GapList gaps;
  __nv_bfloat16* context_THK;
  float* lse_HT;
  int num_rows;
  int num_heads;
  float scale;  ///< 1 / sqrt K
  AttentionKeepBits keep;
  float dropout_scale;
};

__device__ inline void produce(const CUtensorMap& qkv_map, const Parameters& p, Shared& shared) {
  Cursor at;
  RingCursor<ItemQueue::kSlots> slot;
  for (ItemTaker items(p.items);;) {
    const AttentionItem item = items.take(p.items);
    shared.queue.push(slot, item);
    if (item.length == 0) return;
    const Plan plan(item, kAttentionTileRows);
    for (int i = 0, j = 0; i < plan.num_loads(); ++i, at.advance()) {
      shared.ring.wait_empty(at);
      Mbarrier& full = shared.ring.full[at.stage];
      full.arrive_expecting(2 * kTileBytes);
      const auto load = [&](unsigned char* tile, int part) {
        copy_rows(qkv_map, tile, full, (part * p.num_heads + item.head) * kTileRows,
                  item.start + j * kTileRows, item.length - j * kTileRows);
      };
      load(shared.keys[at.stage], 1);
      load(shared.values[at.stage], 2);
      j = j + 1 == plan.num_streamed ? 0 : j + 1;
    }
  }
}

/// Fetches the queries that warpgroups own, for each of them one block ahead, in the order in which blocks
/// are dealt. By one thread: threads of one warp that wait for different warpgroups could wait for each
/// other.
__device__ inline void serve(const CUtensorMap& qkv_map, const Parameters& p, Shared& shared) {
  RingCursor<kWarpgroups> warpgroup;  // blocks go round, so each round is a phase of all warpgroups' barriers
  RingCursor<ItemQueue::kSlots> slot;
  for (;;) {
    const AttentionItem item = shared.queue.pop(slot);
    if (item.length == 0) return;
    const Plan plan(item, kAttentionTileRows);
    for (int block = 0; block < plan.num_owned; ++block, warpgroup.advance()) {
      shared.owned.wait_empty(warpgroup);
      Mbarrier& full = shared.owned.full[warpgroup.stage];
      full.arrive_expecting(kTileBytes);
      const int first = item.first + block * kTileRows;
      copy_rows(qkv_map, shared.queries[warpgroup.stage], full, item.head * kTileRows, item.start + first,
                item.length - first);
    }
  }
}

/// The softmax of a thread's two rows as far as keys were seen: exponentials relative to a reference score,
/// and the thread's share of their sum. The reference is the largest score of the first block, and follows
/// only where a score is larger by a factor of 2^kHeadroom: until then exponentials are just larger than one,
/// which costs no precision, and O need not be scaled again for every block.
struct RunningSoftmax {
  static constexpr float kHeadroom = 8;
  static constexpr int kChains = 4;  ///< of maxima and of sums of a row, so that few wait for one another
  float reference[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};
  float factor[2];  ///< what turns O so far to the new reference, where update returns true

  /// Replaces scores by exponentials. Returns whether the reference of any row of the warp has moved.
  __device__ bool update(Accumulator& s, float scale_log2) {
    float highest[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float of[kChains];
#pragma unroll
      for (int c = 0; c < kChains; ++c) of[c] = s[4 * (c / 2) + 2 * i + c % 2];
#pragma unroll
      for (int c = kChains; c < 16; ++c)
        of[c % kChains] = fmaxf(of[c % kChains], s[4 * (c / 2) + 2 * i + c % 2]);
      highest[i] = fmaxf(fmaxf(of[0], of[1]), fmaxf(of[2], of[3]));
    }
    const bool moves = __any_sync(
        0xFFFFFFFF, fmaxf(highest[0] - reference[0], highest[1] - reference[1]) * scale_log2 > kHeadroom);
    if (moves) move_reference(highest, scale_log2);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float shift = -reference[i] * scale_log2;
      float of[kChains] = {sum[i], 0, 0, 0};
#pragma unroll
      for (int c = 0; c < 16; ++c) {
        float& x = s[4 * (c / 2) + 2 * i + c % 2];
        x = fast_exp2(fmaf(x, scale_log2, shift));
        of[c % kChains] += x;
      }
      sum[i] = (of[0] + of[1]) + (of[2] + of[3]);
    }
    return moves;
  }

  __device__ void move_reference(float (&highest)[2], float scale_log2) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      highest[i] = fmaxf(highest[i], __shfl_xor_sync(0xFFFFFFFF, highest[i], 1));
      highest[i] = fmaxf(highest[i], __shfl_xor_sync(0xFFFFFFFF, highest[i], 2));
      highest[i] = fmaxf(highest[i], reference[i]);
      factor[i] = fast_exp2((reference[i] - highest[i]) * scale_log2);
      reference[i] = highest[i];
      sum[i] *= factor[i];
    }
  }

  /// Adds up the shares of the quad.
  __device__ void finish() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sum[i] += __shfl_xor_sync(0xFFFFFFFF, sum[i], 1);
      sum[i] += __shfl_xor_sync(0xFFFFFFFF, sum[i], 2);
    }
  }
};

/// Takes the columns from num_columns on out of the softmax.
__device__ inline void mask_columns(Accumulator& s, int num_columns, int lane_in_quad) {
#pragma unroll
  for (int i = 0; i < 32; ++i)
    if (8 * (i / 4) + i % 2 >= num_columns - 2 * lane_in_quad) s[i] = -INFINITY;
}

/// Attention of one block of queries.
template <bool kHasDropout>
__device__ inline void attend(const Parameters& p, const AttentionItem& item, int num_blocks, int block,
                              Cursor at, bool releases, const OwnedCursor& owned_at, std::uint64_t queries,
                              Shared& shared) {
  const FragmentRows rows = fragment_rows();
  const int first = item.first + block * kTileRows;
  const float scale_log2 = p.scale * kLog2OfE;
  const int masked_block = item.length % kTileRows == 0 ? -1 : num_blocks - 1;
  const std::uint64_t keys = describe_tile(shared_address(shared.keys[0]));
  const std::uint64_t values = describe_tile(shared_address(shared.values[0]));
  constexpr std::uint64_t kTile = kTileBytes >> 4;

  const KeepRows keep(p.keep, p.keep.by_query, item.head, item.start + first, rows);
  std::uint32_t keep_bits[2];
  RunningSoftmax softmax;
  Accumulator s, o;
  RegisterOperand weights;
  shared.owned.wait_full(owned_at);
  shared.ring.wait_full(at);
  wgmma_fence();
  issue_product<TileB::Transposed>(s, queries, keys + at.stage * kTile, 0);
  wgmma_commit();
  if constexpr (kHasDropout) keep.load(p.keep, 0, keep_bits);
  wgmma_wait<0>();
  hold(s);
  if (num_blocks == 1) shared.owned.release(owned_at);
  if (masked_block == 0) mask_columns(s, item.length % kTileRows, rows.lane_in_quad);
  softmax.update(s, scale_log2);
  to_operand(s, weights);
  if constexpr (kHasDropout) drop(weights, keep_bits);
#pragma unroll
  for (int i = 0; i < 32; ++i) o[i] = 0;

  // While the tensor cores add P V of one block, the scores of the next become exponentials.
  Cursor next = at;
  next.advance();
  if (num_blocks > 1) shared.ring.wait_full(next);
  for (int j = 1; j < num_blocks; ++j) {
    wgmma_fence();
    issue_product<TileB::Transposed>(s, queries, keys + next.stage * kTile, 0);
    wgmma_commit();
    issue_product<TileB::Plain>(o, weights, values + at.stage * kTile, 1);
    wgmma_commit();
    if constexpr (kHasDropout) keep.load(p.keep, j, keep_bits);
    wgmma_wait<1>();
    hold(s);
    if (j == num_blocks - 1) shared.owned.release(owned_at);
    if (masked_block == j) mask_columns(s, item.length % kTileRows, rows.lane_in_quad);
    const bool moves = softmax.update(s, scale_log2);
    hold(s);
    // The loop of this wait also keeps the compiler from waiting for P V before the exponentials.
    const Cursor previous = at;
    at = next;
    next.advance();
    if (j + 1 < num_blocks) shared.ring.wait_full(next);
    wgmma_wait<0>();
    hold(o);
    if (releases) shared.ring.release(previous);
    if (moves)
#pragma unroll
      for (int i = 0; i < 32; ++i) o[i] *= softmax.factor[i / 2 % 2];
    to_operand(s, weights);
    if constexpr (kHasDropout) drop(weights, keep_bits);
  }
  wgmma_fence();
  issue_product<TileB::Plain>(o, weights, values + at.stage * kTile, 1);
  wgmma_commit();
  softmax.finish();
  wgmma_wait<0>();
  hold(o);
  if (releases) shared.ring.release(at);

  const std::int64_t row = item.start + first;
  const float kept_scale = kHasDropout ? p.dropout_scale : 1;
  const float scale[2] = {__fdividef(kept_scale, softmax.sum[0]), __fdividef(kept_scale, softmax.sum[1])};
  const std::int64_t stride = static_cast<std::int64_t>(p.num_heads) * kTileRows;
  store_rows(o, scale, shared.outputs[owned_at.stage], p.context_THK + row * stride + item.head * kTileRows,
             stride, item.length - first);
  if (rows.lane_in_quad == 0)
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (rows.row[i] < item.length - first)
        p.lse_HT[static_cast<std::int64_t>(item.head) * p.num_rows + row + rows.row[i]] =
            softmax.reference[i] * p.scale + __logf(softmax.sum[i]);
  __syncwarp();  // some lanes have stored alone, and products need whole warps
}

/// Takes items until none is left.
template <bool kHasDropout>
__device__ inline void work(int warpgroup, const Parameters& p, Shared& shared) {
  WarpgroupWalk<kStages, kWarpgroups> walk{{warpgroup}};
  RingCursor<ItemQueue::kSlots> slot;
  OwnedCursor owned_at = {warpgroup, 0};
  const std::uint64_t queries = describe_tile(shared_address(shared.queries[warpgroup]));
  for (;;) {
    const AttentionItem item = shared.queue.pop(slot);
    if (item.length == 0) return;
    const Plan plan(item, kAttentionTileRows);
    walk.over(plan, shared.ring, [&](int block, const Cursor& at, bool releases) {
      attend<kHasDropout>(p, item, plan.num_streamed, block, at, releases, owned_at, queries, shared);
      owned_at.advance(kWarpgroups);
    });
  }
}

/// The warpgroup that does not compute: warp 0 produces, warp 1 is the valet, the others write zeros.
__device__ inline void feed(const CUtensorMap& qkv_map, const Parameters& p, Shared& shared) {
  const int thread = threadIdx.x % 128;
  if (thread == 0) produce(qkv_map, p, shared);
  if (thread == 32) serve(qkv_map, p, shared);
  if (thread >= 64) p.gaps.zero(p.context_THK, p.num_heads * kTileRows, thread - 64, 64);
}

template <bool kHasDropout>
__global__ void __launch_bounds__(kThreads, 1)
    attention_forward_kernel(const __grid_constant__ CUtensorMap qkv_map,
                             const __grid_constant__ Parameters p) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  Shared& shared = *reinterpret_cast<Shared*>(shared_bytes);
  if (threadIdx.x == 0) {
    shared.ring.init(1, 128 * kWarpgroups);
    shared.queue.barriers.init(1, 128 * kWarpgroups + 1);
    shared.owned.init(1, 128);
    fence_barrier_init();
  }
  __syncthreads();

  const int warpgroup = __shfl_sync(0xFFFFFFFF, threadIdx.x / 128, 0);
  if (warpgroup == kWarpgroups) {
    shrink_registers<kFeederRegisters>();
    feed(qkv_map, p, shared);
  } else {
    grow_registers<kWorkerRegisters>();
    work<kHasDropout>(warpgroup, p, shared);
  }
}

}  // namespace

cudaError_t attention_forward_sm90(const AttentionArguments& args, cudaStream_t stream) {
  const std::int64_t width = static_cast<std::int64_t>(args.num_heads) * kTileRows;
  CUtensorMap qkv_map;
  if (cudaError_t error = make_tensor_map(args.qkv_T3HK, args.num_rows, 3 * width, qkv_map)) return error;
  const auto kernel =
      args.keep.by_query != nullptr ? attention_forward_kernel<true> : attention_forward_kernel<false>;
  if (cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared)))
    return error;

  const Parameters parameters = {{args.tiles, args.num_tiles, args.next_item, args.num_heads},
                                 {args.gaps, args.num_gaps},
                                 args.context_THK,
                                 args.lse_HT,
                                 args.num_rows,
                                 args.num_heads,
                                 1 / std::sqrt(static_cast<float>(kTileRows)),
                                 args.keep,
                                 args.dropout_scale};
  kernel<<<args.num_multiprocessors, kThreads, sizeof(Shared), stream>>>(qkv_map, parameters);
  return cudaGetLastError();
}

}  // namespace plenum::kernels::cuda

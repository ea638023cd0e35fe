#pragma once

#include <cstdint>

#include "plenum/kernels/cuda/attention_backward_state.cuh"
#include "plenum/kernels/cuda/attention_fragments.cuh"

namespace plenum::kernels::cuda {

// The warpgroup of backward that does not compute.

/// Streams a phase's blocks. By all threads of the producer's warp.
template <int kPhase>
__device__ inline void stream_phase(const BackwardMaps& maps, const BackwardParameters& p,
                                    const AttentionItem& item, BackwardShape::Cursor& at,
                                    BackwardShared& shared) {
  const int lane = threadIdx.x % 32;
  const BackwardShape::Plan plan(item, kAttentionTileRows);
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

template <BackwardLaunch kLaunch>
__device__ inline void produce(const BackwardMaps& maps, const BackwardParameters& p,
                               BackwardShared& shared) {
  BackwardShape::Cursor at;
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
__device__ inline void compute_statistics(const BackwardParameters& p, const AttentionItem& item, int first,
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
      statistics[i].shift = -kLog2OfE * p.lse_HT[index + 32 * i];
      p.statistics_HT[index + 32 * i] = statistics[i];
    }
}

/// Fetches what a warpgroup owns, one block ahead. By all threads of a warp.
template <BackwardLaunch kLaunch>
__device__ inline void serve(int warpgroup, const BackwardMaps& maps, const BackwardParameters& p,
                             BackwardShared& shared) {
  const int lane = threadIdx.x % 32;
  BackwardShape::OwnedRing& owned = shared.owned[warpgroup];
  BackwardShape::Deal deal{warpgroup};
  BackwardShape::OwnedCursor at;
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
    const BackwardShape::Plan plan(item, kAttentionTileRows);
    if (has_phase1<kLaunch>()) {
      for (int block = deal.first(plan); block < plan.num_owned; block += BackwardShape::kWarpgroups) {
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
      for (int block = deal.first(plan); block < plan.num_owned; block += BackwardShape::kWarpgroups) {
        owned.wait_empty(at);
        load(maps.qkv, column_of(p, 1, item.head), maps.qkv, column_of(p, 2, item.head),
             item.start + item.first + block * kTileRows);
      }
      deal.pass(plan);
    }
  }
}

/// The warpgroup that does not compute: warp 0 produces, one warp for each other warpgroup is its valet, the
/// last writes zeros.
template <BackwardLaunch kLaunch>
__device__ inline void feed(const BackwardMaps& maps, const BackwardParameters& p, BackwardShared& shared) {
  const int warp = threadIdx.x / 32 % 4;
  if (warp == 0)
    produce<kLaunch>(maps, p, shared);
  else if (warp <= BackwardShape::kWarpgroups)
    serve<kLaunch>(warp - 1, maps, p, shared);
  else if (kLaunch == BackwardLaunch::First)
    p.gaps.zero(p.dqkv_T3HK, 3 * p.num_heads * kTileRows, threadIdx.x % 32, 32);
}

}  // namespace plenum::kernels::cuda

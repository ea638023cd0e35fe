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
      const auto load = [&](int tile, const CUtensorMap& map, int column) {
        copy_rows(map, shared.streamed[tile][at.stage], full, column, row, item.length - j * kTileRows);
      };
      full.arrive_expecting(2 * kTileBytes);
      load(0, maps.qkv, column_of(p, kPhase == 1 ? 1 : 0, item.head));
      if constexpr (kPhase == 1)
        load(1, maps.qkv, column_of(p, 2, item.head));
      else
        load(1, maps.dcontext, item.head * kTileRows);
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

/// What shifts the scores of the query at this row of the block, or zero behind the sequence's end.
__device__ inline float load_shift(const BackwardParameters& p, const AttentionItem& item, int row) {
  if (row >= item.length) return 0;
  return -kLog2OfE * p.lse_HT[static_cast<std::int64_t>(item.head) * p.num_rows + item.start + row];
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
  const auto load = [&](int tile, const CUtensorMap& map, int column, const AttentionItem& item, int first) {
    copy_rows(map, shared.own[warpgroup][tile], owned.full[0], column, item.start + first,
              item.length - first);
  };
  for (;;) {
    const AttentionItem item = shared.queue.pop(slot);
    if (item.length == 0) return;
    const BackwardShape::Plan plan(item, kAttentionTileRows);
    if (has_phase1<kLaunch>()) {
      for (int block = deal.first(plan); block < plan.num_owned; block += BackwardShape::kWarpgroups) {
        const int first = item.first + block * kTileRows;
        const float shifts[2] = {load_shift(p, item, first + lane), load_shift(p, item, first + lane + 32)};
        owned.wait_empty(at);
        shared.own_shifts[warpgroup][lane] = shifts[0];
        shared.own_shifts[warpgroup][lane + 32] = shifts[1];
        __syncwarp();
        if (lane == 0) {
          owned.full[0].arrive_expecting(3 * kTileBytes);
          load(0, maps.qkv, column_of(p, 0, item.head), item, first);
          load(1, maps.dcontext, item.head * kTileRows, item, first);
          load(2, maps.context, item.head * kTileRows, item, first);
        }
        at.advance();
      }
      deal.pass(plan);
    }
    if (has_phase2<kLaunch>(item)) {
      for (int block = deal.first(plan); block < plan.num_owned; block += BackwardShape::kWarpgroups) {
        const int first = item.first + block * kTileRows;
        owned.wait_empty(at);
        if (lane == 0) {
          owned.full[0].arrive_expecting(2 * kTileBytes);
          load(0, maps.qkv, column_of(p, 1, item.head), item, first);
          load(1, maps.qkv, column_of(p, 2, item.head), item, first);
        }
        at.advance();
      }
      deal.pass(plan);
    }
  }
}

/// The warpgroup that does not compute: warp 0 produces and at last writes zeros to gaps, the others are
/// valets.
template <BackwardLaunch kLaunch>
__device__ inline void feed(const BackwardMaps& maps, const BackwardParameters& p, BackwardShared& shared) {
  const int warp = threadIdx.x / 32 % 4;
  if (warp > 0) {
    serve<kLaunch>(warp - 1, maps, p, shared);
  } else {
    produce<kLaunch>(maps, p, shared);
    if (kLaunch == BackwardLaunch::First)
      p.gaps.zero(p.dqkv_T3HK, 3 * p.num_heads * kTileRows, threadIdx.x % 32, 32);
  }
}

}  // namespace plenum::kernels::cuda

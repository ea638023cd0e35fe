#pragma once

#include <cstdint>

#include "plenum/kernels/cuda/attention/attention_backward_state.cuh"
#include "plenum/kernels/cuda/attention/attention_fragments.cuh"

namespace plenum::kernels::cuda {

// The warpgroup of backward that does not compute gradients.

/// Takes items and fetches all that the others read, as far ahead as there is room. By one thread.
__device__ inline void produce(const BackwardMaps& maps, const BackwardParameters& p,
                               BackwardShared& shared) {
  BackwardShape::OwnedCursor owned_at;
  RingCursor<1> output_at;
  BackwardShape::Cursor at;
  RingCursor<ItemQueue::kSlots> slot;
  for (ItemTaker items(p.items);;) {
    const AttentionItem item = items.take(p.items);
    if (item.first > 0) continue;  // longer sequences have several tiles, and are one item here
    shared.queue.push(slot, item);
    if (item.length == 0) return;
    const KeyRounds rounds(item.length);
    const auto load = [&](const CUtensorMap& map, unsigned char* tile, Mbarrier& full, int column,
                          int block) {
      copy_rows(map, tile, full, column, item.start + block * kTileRows, item.length - block * kTileRows);
    };
#pragma unroll 1
    for (int round = 0; round < rounds.num_rounds; ++round) {
      shared.owned.wait_empty(owned_at);
      Mbarrier& owned_full = shared.owned.full[owned_at.stage];
      const int num_keys = rounds.count(round);
      owned_full.arrive_expecting(2 * num_keys * kTileBytes);
#pragma unroll 1
      for (int w = 0; w < num_keys; ++w) {
        const int block = rounds.first(round) + w;
        load(maps.qkv, shared.keys[owned_at.stage][w], owned_full, column_of(p, 1, item.head), block);
        load(maps.qkv, shared.values[owned_at.stage][w], owned_full, column_of(p, 2, item.head), block);
      }
      owned_at.advance();
#pragma unroll 1
      for (int block = 0; block < rounds.num_blocks; ++block, at.advance()) {
        shared.streamed.wait_empty(at);
        Mbarrier& full = shared.streamed.full[at.stage];
        full.arrive_expecting(2 * kTileBytes);
        load(maps.qkv, shared.queries[at.stage], full, column_of(p, 0, item.head), block);
        load(maps.dcontext, shared.dcontext[at.stage], full, item.head * kTileRows, block);
        if (round > 0) continue;
        shared.outputs.wait_empty(output_at);
        shared.outputs.full[0].arrive_expecting(kTileBytes);
        load(maps.context, shared.context, shared.outputs.full[0], item.head * kTileRows, block);
        output_at.advance();
      }
    }
  }
}

/// The product of a row of two tiles, of which the copy engine has swizzled the chunks.
__device__ inline float dot_rows(const unsigned char* x, const unsigned char* y, int row) {
  float sum = 0;
#pragma unroll 2
  for (int c = 0; c < 8; ++c) {
    const int at = 128 * row + 16 * (c ^ (row % 8));
    sum += dot_chunks(*reinterpret_cast<const uint4*>(x + at), *reinterpret_cast<const uint4*>(y + at));
  }
  return sum;
}

/// Gives each block of queries its statistics: in the first round from lse, dO and O, later from where it has
/// kept them. By two warps, of which each thread has one row; zeros behind the sequence's end.
__device__ inline void provide_statistics(int row, const BackwardParameters& p, BackwardShared& shared) {
  BackwardShape::Cursor at;
  RingCursor<1> output_at;
  RingCursor<ItemQueue::kSlots> slot;
  for (;;) {
    const AttentionItem item = shared.queue.pop(slot);
    if (item.length == 0) return;
    const KeyRounds rounds(item.length);
    const float* const lse = p.lse_HT + static_cast<std::int64_t>(item.head) * p.num_rows + item.start;
    for (int round = 0; round < rounds.num_rounds; ++round)
      for (int block = 0; block < rounds.num_blocks; ++block, at.advance()) {
        const int query = block * kTileRows + row;
        float2* const kept = p.scratch.statistics_of(block) + row;
        float2 of = {0, 0};
        if (round > 0)
          of = *kept;
        else if (query < item.length)
          of.x = -lse[query] / p.scale;
        shared.streamed.wait_full(at);
        if (round == 0) {
          shared.outputs.wait_full(output_at);
          of.y = -dot_rows(shared.dcontext[at.stage], shared.context, row) / p.dropout_scale;
          shared.outputs.release(output_at);
          output_at.advance();
          if (rounds.num_rounds > 1) *kept = of;
        }
        shared.shifts[at.stage][row] = of.x;
        shared.centers[at.stage][row] = of.y;
        shared.has_statistics[at.stage].arrive();
      }
  }
}

/// Two warps provide statistics, one thread produces, one warp writes zeros to gaps.
__device__ inline void feed(const BackwardMaps& maps, const BackwardParameters& p, BackwardShared& shared) {
  const int thread = threadIdx.x % 128;
  if (thread < kTileRows) provide_statistics(thread, p, shared);
  if (thread == kTileRows) produce(maps, p, shared);
  if (thread >= 96) p.gaps.zero(p.dqkv_T3HK, 3 * p.num_heads * kTileRows, thread - 96, 32);
}

}  // namespace plenum::kernels::cuda

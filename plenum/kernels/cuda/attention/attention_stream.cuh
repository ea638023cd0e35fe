#pragma once

#include <cstdint>

#include "plenum/kernels/cuda/attention/attention_tiles.h"
#include "plenum/kernels/cuda/device/ring.cuh"
#include "plenum/kernels/cuda/device/wgmma.cuh"

namespace plenum::kernels::cuda {

// The items of work and their way to the warpgroups, for both directions; and how work flows in forward
// (backward: attention_backward_state.cuh). Warpgroups that compute own blocks of 64 rows of a tile, one at a
// time, and walk over all blocks of 64 rows of the sequence that these rows need: queries are owned, keys and
// values streamed. One more warpgroup feeds them:
//   - the producer takes items (a tile and a head) from a counter in device memory and streams the blocks of
//     the sequence through a ring of stages in shared memory. A sequence of at most kStages blocks is loaded
//     once and stays until the last owned block has walked over it; longer ones are streamed anew for each
//     round of owned blocks;
//   - a valet fetches the rows that each working warpgroup will own next.
//
// Working warpgroups never wait for each other: owned blocks are dealt in turn, across items, and whoever is
// done goes on with the next item while its blocks are being loaded. So the tensor cores always find another
// warpgroup's product while one computes exponentials. Which block goes where never enters a result: each has
// one owner.

/// A tile and a head; length 0: no work is left.
struct AttentionItem {
  int start;
  int length;
  int first;
  int head;
};

__device__ inline int num_blocks_of(int num_rows) {
  return (num_rows + kTileRows - 1) / kTileRows;
}

/// Items on their way from the producer to the warpgroups.
struct ItemQueue {
  static constexpr int kSlots = 2;
  RingBarriers<kSlots> barriers;
  AttentionItem items[kSlots];

  __device__ void push(RingCursor<kSlots>& at, const AttentionItem& item) {
    barriers.wait_empty(at);
    items[at.stage] = item;
    barriers.full[at.stage].arrive();
    at.advance();
  }
  /// By each thread that reads; the barriers count them all.
  __device__ AttentionItem pop(RingCursor<kSlots>& at) {
    barriers.wait_full(at);
    const AttentionItem item = items[at.stage];
    barriers.release(at);
    at.advance();
    return item;
  }
};

/// The list of items in device memory: heads of a tile are neighbours, so that what runs at the same time
/// reads the same rows.
struct ItemSource {
  const AttentionTile* tiles;
  const std::int32_t* num_tiles;
  std::int32_t* next;  ///< counter: zero before each launch
  int num_heads;
};

/// Takes items for a thread block until it gets length 0. The counter is asked one item ahead: its answer
/// takes longer than a short sequence.
class ItemTaker {
 public:
  __device__ explicit ItemTaker(const ItemSource& source) : counted_(atomicAdd(source.next, 1)) {}

  __device__ AttentionItem take(const ItemSource& source) {
    const int index = counted_;
    if (index >= *source.num_tiles * source.num_heads) return {0, 0, 0, 0};
    counted_ = atomicAdd(source.next, 1);
    const AttentionTile tile = source.tiles[index / source.num_heads];
    return {tile.start, tile.length, tile.first, index % source.num_heads};
  }

 private:
  int counted_;
};

/// How the owned blocks of an item fall to warpgroups and how often its blocks are streamed; the producer and
/// all warpgroups come to the same answer.
template <int kStages, int kWarpgroups>
struct ItemPlan {
  int num_owned;     ///< blocks of the tile
  int num_streamed;  ///< blocks of the sequence
  bool is_resident;

  __device__ ItemPlan(const AttentionItem& item, int tile_rows)
      : num_owned(num_blocks_of(min(item.length - item.first, tile_rows))),
        num_streamed(num_blocks_of(item.length)),
        is_resident(num_streamed <= kStages) {}

  __device__ int num_rounds() const { return (num_owned + kWarpgroups - 1) / kWarpgroups; }
  __device__ int num_loads() const { return is_resident ? num_streamed : num_streamed * num_rounds(); }
};

/// Which owned blocks fall to a warpgroup: blocks go round, on from where the item before has ended.
template <int kStages, int kWarpgroups>
struct BlockDeal {
  using Plan = ItemPlan<kStages, kWarpgroups>;
  int warpgroup;
  int next_owner = 0;

  __device__ int first() const { return (warpgroup + kWarpgroups - next_owner) % kWarpgroups; }
  __device__ int count(const Plan& plan) const {
    return (plan.num_owned - first() + kWarpgroups - 1) / kWarpgroups;
  }
  __device__ void pass(const Plan& plan) { next_owner = (next_owner + plan.num_owned) % kWarpgroups; }
};

/// A warpgroup's walk over items.
template <int kStages, int kWarpgroups>
struct WarpgroupWalk {
  BlockDeal<kStages, kWarpgroups> deal;
  RingCursor<kStages> cursor = {};

  /// Calls visit(owned block, cursor at the first streamed block, whether it releases the stages) for each
  /// owned block of this warpgroup. Where a round of loads has none for it, releases the stages.
  template <typename Visit>
  __device__ void over(const ItemPlan<kStages, kWarpgroups>& plan, RingBarriers<kStages>& ring, Visit visit) {
    const int first = deal.first();
    const int num_mine = deal.count(plan);
    const int num_visits = plan.is_resident ? max(num_mine, 1) : plan.num_rounds();
    for (int v = 0; v < num_visits; ++v) {
      const bool releases = !plan.is_resident || v == num_visits - 1;
      if (v < num_mine)
        visit(first + v * kWarpgroups, cursor, releases);
      else
        pass_by(plan, ring);
      if (releases) cursor.advance(plan.num_streamed);
    }
    deal.pass(plan);
  }

 private:
  /// A stage may only be released once it was full, or it would count for the round before.
  __device__ void pass_by(const ItemPlan<kStages, kWarpgroups>& plan, RingBarriers<kStages>& ring) const {
    RingCursor<kStages> at = cursor;
    for (int j = 0; j < plan.num_streamed; ++j, at.advance()) {
      ring.wait_full(at);
      ring.release(at);
    }
  }
};

}  // namespace plenum::kernels::cuda

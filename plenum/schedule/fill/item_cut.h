#pragma once

#include <optional>
#include <span>

#include "plenum/schedule/fill/ready_pool.h"
#include "plenum/schedule/fill/refresh.h"

namespace plenum::schedule {

/// An item cut into equal pieces, some of which run now.
struct ItemCut {
  std::size_t length = 0;  ///< of the item, in ReadyPool::lengths()
  std::size_t num_pieces = 1;
  std::size_t num_now = 0;
  double piece_seconds = 0;
  double waste = 0;  ///< what of the gap nothing can fill after them
};

/// The shortest gap that counts: shorter ones together make less than a twentieth of the idle time.
double shortest_counting_gap(std::span<const Gap> gaps);

/// Finds a cut whose first pieces fill `room` but for less than half of `waste`: the one with fewest pieces
/// that leaves at most `enough`, or the one that leaves least. Pieces are short enough that the later ones
/// fit into a gap of `short_gap`, or as short as they may get. Nothing if there is none.
std::optional<ItemCut> find_cut(const ReadyPool& pool, const Refresh& refresh, const CostModel& costs,
                                Rank rank, double room, double waste, double enough, double short_gap);

}  // namespace plenum::schedule

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plenum/schedule/fill/refresh.h"

namespace plenum::schedule {

/// A cycle of steps in which several refreshes begin, evenly spread, and each may reach into later cycles.
struct CycleShape {
  std::size_t num_steps = 1;
  std::size_t num_refreshes = 1;

  double refresh_steps() const { return static_cast<double>(num_steps) / static_cast<double>(num_refreshes); }
  /// The step whose statistics a refresh takes.
  std::size_t statistics_step(std::size_t refresh) const { return refresh * num_steps / num_refreshes; }
};

/// What runs first where there is a choice.
enum class WorkOrder : std::uint8_t {
  OldestFirst,      ///< older refreshes first: inverses are fresh
  StatisticsFirst,  ///< what keeps values of a step alive first: little memory
};

/// Where an item, or a piece of one, runs. Times and steps are counted from the begin of the cycle in which
/// its statistics are taken; the cycle repeats, so it also runs a whole number of cycles earlier and later.
struct PlacedItem {
  std::uint32_t item = 0;  ///< in Refresh::items()
  std::uint32_t refresh = 0;
  std::uint8_t piece = 0;
  std::uint8_t num_pieces = 1;
  std::uint32_t step = 0;
  std::uint32_t position = 0;  ///< of the step's own action that follows it in its lane
  double start = 0;
  double end = 0;
};

struct PlacementOptions {
  CycleShape shape;
  double lag_steps = 0;  ///< how long the first refresh waits before its work begins
  WorkOrder order = WorkOrder::OldestFirst;
  std::size_t max_age = kMaxAge;  ///< of any item, in steps
  bool drains = false;            ///< nothing reaches into the next cycle; for one refresh without a lag
  /// Items that compute and have a place already, for one refresh without a lag. One that the gap at its
  /// position has no room for makes the step longer.
  std::span<const PlacedItem> fixed = {};
};

struct Placement {
  std::vector<std::vector<PlacedItem>> compute;  ///< of each rank, in the order in which they were placed
  std::vector<std::vector<PlacedItem>> data;     ///< likewise
  std::vector<PlacedItem> last;  ///< of item i of refresh r, its last piece: last[r * num_items + i]
};

/// Finds a place for every item of every refresh of a cycle in the gaps of the steady step, no item before
/// its inputs exist and none overlapping another, so that the step does not get longer. Nothing if it finds
/// none.
///
/// It goes through the gaps of all ranks in order of time, once round the cycle, and fills each from what is
/// ready, older refreshes first, as long as the rest of the gap can still be filled; long splittable items
/// are cut where nothing else ends a gap well. What is left goes through the remaining holes in further
/// rounds.
std::optional<Placement> place(const SteadyStep& step, const Refresh& refresh, const CostModel& costs,
                               const PlacementOptions& options);

}  // namespace plenum::schedule

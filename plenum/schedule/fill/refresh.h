#pragma once

#include <cstdint>
#include <vector>

#include "plenum/schedule/fill/steady_step.h"

namespace plenum::schedule {

/// The work of one refresh over all ranks, and what waits for what. Times are in seconds from the begin of
/// the step whose statistics it takes, which is one for all items at first.
class Refresh {
 public:
  struct Item {
    WorkItem work;
    std::vector<Rank> ranks;  ///< one, or the group of a collective
    double seconds = 0;
    std::size_t step = 0;           ///< whose statistics it belongs to, counted from the refresh's first
    double ready = 0;               ///< when the step has made all its inputs that the step makes
    std::int64_t ready_order = -1;  ///< SteadyStep::order() of the last action that makes one; -1: none does
    double kept_from = 0;           ///< when the step no longer needs the first of these itself
    std::vector<std::uint32_t> predecessors = {};  ///< items that make its other inputs
    std::vector<std::uint32_t> successors = {};
    double height = 0;  ///< seconds of the longest chain of items that begins with it
  };

  /// Throws UserError if an item reads what neither the step nor another item makes.
  Refresh(const SteadyStep& step, const Filler& filler, const CostModel& costs);

  /// The same without some of its items, which then none of the others waits for, with statistics of these
  /// steps. What waits for each other belongs to one step.
  Refresh without(const std::vector<bool>& is_dropped, const std::vector<std::size_t>& steps) const;

  const std::vector<Item>& items() const { return items_; }
  /// The time that a rank computes in one refresh.
  double compute_seconds(Rank rank) const { return compute_seconds_[rank.index()]; }
  /// The time that its data-parallel lane is busy with one refresh.
  double reduce_seconds(Rank rank) const { return reduce_seconds_[rank.index()]; }
  /// The item that makes a value; nothing if none does.
  std::optional<std::uint32_t> maker(Rank rank, std::uint32_t value) const;

 private:
  Refresh() = default;
  void collect(const SteadyStep& step, const Filler& filler, const CostModel& costs);
  void link(const SteadyStep& step);
  void find_heights();
  void wait_for_dropped(std::uint32_t collective, const std::vector<bool>& is_dropped, Item& kept) const;

  std::vector<Item> items_;
  std::vector<double> compute_seconds_;
  std::vector<double> reduce_seconds_;
  std::vector<std::vector<std::uint32_t>> makers_;  ///< of each rank's values
};

/// The fewest steps in whose idle time a refresh has room: its work over the idle time of a step, in the
/// compute or data lane of the rank where that is most; at least 1. Throws UserError if a rank has work but
/// no idle time.
double least_refresh_steps(const SteadyStep& step, const Refresh& refresh);

}  // namespace plenum::schedule

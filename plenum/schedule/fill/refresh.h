#pragma once

#include <cstdint>
#include <vector>

#include "plenum/schedule/fill/steady_step.h"

namespace plenum::schedule {

/// The work of one refresh over all ranks, and what waits for what. Times are in seconds from the begin of
/// the step whose statistics it takes.
class Refresh {
 public:
  struct Item {
    WorkItem work;
    std::vector<Rank> ranks;  ///< one, or the group of a collective
    double seconds = 0;
    double ready = 0;               ///< when the step has made all its inputs that the step makes
    std::int64_t ready_order = -1;  ///< SteadyStep::order() of the last action that makes one; -1: none does
    double kept_from = 0;           ///< when the step no longer needs the first of these itself
    std::vector<std::uint32_t> predecessors = {};  ///< items that make its other inputs
    std::vector<std::uint32_t> successors = {};
    double height = 0;  ///< seconds of the longest chain of items that begins with it
  };

  /// Throws UserError if an item reads what neither the step nor another item makes.
  Refresh(const SteadyStep& step, const Filler& filler, const CostModel& costs);

  const std::vector<Item>& items() const { return items_; }
  /// The time that a rank computes in one refresh.
  double compute_seconds(Rank rank) const { return compute_seconds_[rank.index()]; }
  /// The time that its data-parallel lane is busy with one refresh.
  double reduce_seconds(Rank rank) const { return reduce_seconds_[rank.index()]; }
  /// The item that makes a value; nothing if none does.
  std::optional<std::uint32_t> maker(Rank rank, std::uint32_t value) const;

 private:
  void collect(const SteadyStep& step, const Filler& filler, const CostModel& costs);
  void link(const SteadyStep& step);
  void find_heights();

  std::vector<Item> items_;
  std::vector<double> compute_seconds_;
  std::vector<double> reduce_seconds_;
  std::vector<std::vector<std::uint32_t>> makers_;  ///< of each rank's values
};

}  // namespace plenum::schedule

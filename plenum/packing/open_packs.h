#pragma once

#include <cstdint>
#include <vector>

#include "plenum/packing/plan.h"

namespace plenum::packing {

/// A pack being filled, named by what it holds so far.
using PackId = std::uint32_t;

/// Packs that are filled by counts, longest sequences first. Packs of equal contents are one group with a
/// count, so a placement moves any number of packs at once and memory does not depend on the number of
/// sequences.
///
/// Contents form a tree: a pack's node is its last length, its parent the pack without it. Since lengths
/// arrive in descending order, the only child that can be asked for again is the latest one.
class OpenPacks {
 public:
  struct Group {
    PackId contents = 0;
    std::uint64_t count = 0;
  };

  /// Borrows nothing; keeps capacity and depth of the problem.
  OpenPacks(std::int64_t capacity, std::int64_t depth);

  /// The smallest space >= `space` that an open pack has; above the capacity if there is none.
  std::int64_t tightest_space(std::int64_t space) const;
  /// The largest space that an open pack has; 0 if no pack is open.
  std::int64_t roomiest_space() const;

  /// The group that was last added to those with exactly `space` left. There must be one.
  const Group& group_with(std::int64_t space) const;
  std::int64_t num_sequences(PackId contents) const { return nodes_[contents].num_sequences; }

  /// Takes `num_packs` packs out of group_with(space) and puts `repeat` sequences of `length` into each.
  void extend(std::int64_t space, std::uint64_t num_packs, std::int64_t length, std::int64_t repeat);
  /// Opens `num_packs` new packs with `repeat` sequences of `length` each.
  void open(std::uint64_t num_packs, std::int64_t length, std::int64_t repeat);

  /// All packs, open or closed, as a plan.
  PackingPlan plan() const;

 private:
  struct Node {
    PackId parent = 0;
    PackId latest_child = 0;
    std::int32_t length = 0;
    std::int32_t num_sequences = 0;
    std::uint64_t num_closed = 0;
  };

  PackId child(PackId parent, std::int64_t length, std::int64_t repeat);
  void put(PackId contents, std::uint64_t num_packs, std::int64_t space);

  std::int64_t capacity_;
  std::int64_t depth_;
  std::vector<Node> nodes_;                 ///< node 0 is the empty pack
  std::vector<std::vector<Group>> groups_;  ///< by space left; the last one is used first
  std::vector<std::uint64_t> occupied_;     ///< bit s: a pack with space s is open
};

}  // namespace plenum::packing

#pragma once

#include <vector>

#include "plenum/comm/contribution.h"
#include "plenum/comm/mpi/group_lines.h"

namespace plenum::comm::mpi {

/// What members tell each other at the beginning of every collective: its shape and, where it is small, their
/// elements. One greeting of a group is under way at a time; its memory is kept for the next.
class Greeting {
 public:
  explicit Greeting(const GroupLines& lines);

  /// Whether a member's elements travel with its greeting.
  static bool encloses(const CollectiveShape& shape);

  /// Begins to tell all others, and to hear from them.
  void start(const Contribution& own);
  /// True once all have been told and heard.
  bool test() { return requests_.test(); }

  /// Then: who disagrees with whom about what; empty if nobody does.
  std::string disagreement(const CollectiveShape& own) const;
  /// And the elements that another member enclosed.
  std::span<const std::byte> enclosed(std::size_t member) const;

 private:
  struct Head;
  Head head_of(std::size_t member) const;
  CollectiveShape shape_of(std::size_t member) const;
  std::span<std::byte> place_of(std::size_t member);

  const GroupLines& lines_;
  std::size_t most_bytes_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;  ///< of each member, most_bytes_ apart
  Requests requests_;
};

}  // namespace plenum::comm::mpi

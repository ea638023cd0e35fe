#pragma once

#include <memory>
#include <vector>

#include "plenum/base/gather_rounds.h"
#include "plenum/comm/contribution.h"
#include "plenum/comm/mpi/group_lines.h"

namespace plenum::comm::mpi {

/// What members tell each other at the beginning of every collective: its shape and, where it is small, their
/// elements. It goes by rounds (base/gather_rounds), so that a member of thousands sends and receives a few
/// messages in place of one to and from each other. Members pass on what others said: where there are several
/// rounds, nobody's greeting ends unless all members move theirs on. One greeting of a group is under way at
/// a time; its memory is kept for the next.
class Greeting {
 public:
  explicit Greeting(const GroupLines& lines);

  /// Whether a member's elements travel with its greeting.
  static bool encloses(const CollectiveShape& shape);

  /// Begins to tell all others, and to hear from them.
  void start(const Contribution& own);
  /// Moves it on; true if something changed.
  bool advance();
  /// Whether all have been heard, and all that is passed on has left.
  bool is_done() const { return num_ended_ == rounds_.size(); }

  /// Then: who disagrees with whom about what; empty if nobody does.
  std::string disagreement(const CollectiveShape& own) const;
  /// And the elements that another member enclosed.
  std::span<const std::byte> enclosed(std::size_t member) const;

 private:
  struct Head;
  /// A record is what a member says: its head, its counts and its elements.
  static Head head_at(const std::byte* record);
  const std::byte* record_of(std::size_t member) const;
  CollectiveShape shape_of(std::size_t member) const;
  /// Where up to that many records arrive.
  std::span<std::byte> place_at(std::size_t distance, std::size_t num_records) const;
  void write_own(const Contribution& own);
  void begin_round();
  void end_round();

  const GroupLines& lines_;
  std::size_t most_bytes_;  ///< of a record
  /// Records of this member, the next and so on, without gaps. Those of a round arrive behind them, each
  /// message where its records would lie if all had the greatest size.
  std::unique_ptr<std::byte[]> records_;
  std::vector<std::size_t> begins_;  ///< of the records held and, last, of what comes behind them
  std::vector<base::GatherRound> rounds_;
  std::size_t num_ended_ = 0;  ///< of the rounds
  Requests requests_;
};

}  // namespace plenum::comm::mpi

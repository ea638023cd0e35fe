#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plenum/schedule/core/dataflow.h"

namespace plenum::schedule {

/// How far the compute lane of a rank surely is when its messages come and go. Positions count the actions
/// of the lane from the beginning of the cycle that holds the message; they may lie before or after it.
struct MessageBounds {
  /// Of each action of the pipe lane that receives: actions of the compute lane before this position have
  /// ended, in every execution, when the receive is posted.
  std::vector<std::int64_t> posted_after;
  /// Of each action of the pipe lane that sends: the first action of the compute lane that begins, in every
  /// execution, after the message has come to its receiver.
  std::vector<std::int64_t> received_before;
};

/// What happens before what in every execution of a schedule: lanes run in order, an action begins after what
/// made its inputs has ended, a receive ends after its send has begun, and where values of a group are summed
/// for all nobody ends before all have begun. Nothing else counts: neither times, nor that a send may wait
/// for its receiver, nor what holds only once the first steps of training are over.
class EventOrder {
 public:
  /// Borrows the dataflow, of a schedule that check() accepts. Throws InternalError if it does not run to its
  /// end.
  explicit EventOrder(const Dataflow& dataflow);

  const Dataflow& dataflow() const { return dataflow_; }

  /// Costs a few passes over the actions of all ranks.
  MessageBounds message_bounds(Rank rank) const;

 private:
  /// The beginning (even) or end (odd) of an action, numbered over all ranks and lanes of a cycle.
  using Event = std::uint32_t;
  /// Something that comes before, some cycles earlier.
  struct Cause {
    Event event = 0;
    std::uint32_t cycles_ago = 0;
  };
  struct WatchedLane;
  struct Knowledge;

  Event begin_of(Rank rank, Lane lane, std::size_t position) const;
  static Event end_of(Event begin) { return begin + 1; }
  void find_makers();
  void find_causes();
  void add_causes_of_begin(Rank rank, Lane lane, std::size_t position, std::size_t step);
  void add_causes_of_end(Rank rank, const Action& action, std::size_t step, Event begin);
  void sort_events();
  /// The beginning of the action that makes a value in a step of the cycle; none if nothing does in time.
  Event maker(Rank rank, std::uint32_t value, std::size_t step) const;
  std::span<const Cause> causes(Event event) const;
  WatchedLane watched_lane(Rank rank, Lane lane) const;
  Knowledge know(std::vector<WatchedLane> watched) const;
  /// The position of the first action of a rank's compute lane that begins after an event of a watched lane.
  std::int64_t first_that_knows(Rank rank, const Knowledge& known, std::size_t watched, Event ended) const;

  static constexpr Event kNoEvent = ~Event{0};

  const Dataflow& dataflow_;
  std::vector<Event> lane_begins_;           ///< of each rank and lane, the first event
  std::vector<std::vector<Event>> makers_;   ///< of each rank: by value, then by step of the cycle
  std::vector<Event> receives_;              ///< of each action that sends, its receive
  std::vector<std::uint64_t> cause_begins_;  ///< of each event, and the end of all
  std::vector<Cause> causes_;
  std::vector<Event> order_;  ///< in which the events of a cycle can happen
};

}  // namespace plenum::schedule

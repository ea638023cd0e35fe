#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plenum::schedule {

/// Half-open, in any unit; what ends where another begins does not meet it.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  friend bool operator==(const Interval&, const Interval&) = default;
};

/// How many of the intervals, which return in every cycle of length `cycle` for ever, meet at most in a
/// point. They may begin in one cycle and end in a later one.
std::size_t most_at_once(std::span<const Interval> intervals, std::int64_t cycle);

/// Gives intervals that return in every cycle slots, so that those in the same slot do not meet: as few slots
/// as most_at_once().
///
/// The end that comes k-th and the beginning that comes k-th after as many beginnings as there are slots
/// share a slot. That is a permutation of the intervals, cycle by cycle; one that comes back to itself after
/// w cycles takes w slots in turn.
class SlotPlan {
 public:
  SlotPlan() = default;
  SlotPlan(std::span<const Interval> intervals, std::int64_t cycle);

  std::size_t num_slots() const { return num_slots_; }
  /// Of the interval of that index in that cycle.
  std::size_t slot(std::size_t index, std::uint64_t cycle) const;

 private:
  struct Turn {
    std::size_t first_slot = 0;
    std::uint64_t num_slots = 1;  ///< that it takes in turn
    std::uint64_t offset = 0;     ///< in cycles, below num_slots
  };

  std::size_t num_slots_ = 0;
  std::vector<Turn> turns_;
};

}  // namespace plenum::schedule

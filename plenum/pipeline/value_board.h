#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "plenum/schedule/core/dataflow.h"

namespace plenum::pipeline {

/// Which values exist on a rank, in which step: how the lanes of the rank wait for each other.
///
/// Each value keeps the last few steps in which it was made. No lane runs more than one step ahead of the
/// slowest lane that has work, so those suffice for the oldest value that anyone may ask for. A lane that
/// waits is woken only by what it waits for.
class ValueBoard {
 public:
  /// Of values that nobody has made. Lanes take part once they are enlisted.
  ValueBoard(std::size_t num_values, std::size_t staleness, std::uint64_t first_step);

  /// Blocks until all `values` of `step` exist; values of steps before the first do. False if the board was
  /// closed.
  bool wait(schedule::Lane lane, std::span<const schedule::ValueRef> values, std::uint64_t step);
  void publish(std::span<const schedule::ValueRef> values, std::uint64_t step);

  /// Says that the lane is at the beginning of `step` and waits until no lane is two steps behind. False if
  /// the board was closed.
  bool begin_step(schedule::Lane lane, std::uint64_t step);
  /// The lane has ended and holds up no other.
  void retire(schedule::Lane lane);
  /// Lets a lane take part, for the first time or again. To be called before the others run.
  void enlist(schedule::Lane lane, std::uint64_t step);

  /// Makes all lanes return from their waits, now and later.
  void close();

  /// What a lane waits for; nothing if it does not wait for a value.
  std::optional<schedule::ValueRef> missing(schedule::Lane lane) const;

 private:
  struct LaneWait {
    std::condition_variable woken;
    std::optional<schedule::ValueRef> missing;  ///< with its age counted from `step`
    std::uint64_t step = 0;
    std::optional<std::uint64_t> at_step;  ///< the lane's step; nothing once it has ended
    bool is_held_up = false;               ///< waits for slower lanes
  };

  bool exists(const schedule::ValueRef& value, std::uint64_t step) const;
  std::uint64_t& stamp(std::uint32_t index, std::uint64_t step);
  std::uint64_t slowest_step() const;
  void wake_held_up();

  std::uint64_t first_step_;
  std::size_t ring_;
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> stamps_;  ///< the step in which a value was last made, plus 1
  std::array<LaneWait, schedule::kNumLanes> lanes_;
  bool is_closed_ = false;
};

}  // namespace plenum::pipeline

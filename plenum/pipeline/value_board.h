#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "plenum/schedule/core/dataflow.h"
#include "plenum/tensor/work_queue.h"

namespace plenum::pipeline {

/// Which values exist on a rank, in which step: how the lanes of the rank wait for each other. A value that a
/// device makes exists when its work is issued, and carries the event that tells when it is done.
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
  /// `event`, which must stay what it is while the values may be read, is recorded behind what makes them;
  /// null if they are made.
  void publish(schedule::Lane lane, std::span<const schedule::ValueRef> values, std::uint64_t step,
               const tensor::QueueEvent* event = nullptr);
  /// Overwrites `events` with those behind values of `step` that exist, each once, without those of the lane
  /// itself, whose work has an order.
  void collect_events(schedule::Lane lane, std::span<const schedule::ValueRef> values, std::uint64_t step,
                      std::vector<const tensor::QueueEvent*>& events) const;

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

  /// The last time that a value was made.
  struct Stamp {
    std::uint64_t end_step = 0;  ///< the step plus 1
    const tensor::QueueEvent* event = nullptr;
    schedule::Lane lane = schedule::Lane::Compute;
  };

  bool exists(const schedule::ValueRef& value, std::uint64_t step) const;
  std::size_t place(std::uint32_t index, std::uint64_t step) const { return index * ring_ + step % ring_; }
  std::uint64_t slowest_step() const;
  void wake_held_up();

  std::uint64_t first_step_;
  std::size_t ring_;
  mutable std::mutex mutex_;
  std::vector<Stamp> stamps_;
  std::array<LaneWait, schedule::kNumLanes> lanes_;
  bool is_closed_ = false;
};

}  // namespace plenum::pipeline

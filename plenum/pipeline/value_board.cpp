#include "plenum/pipeline/value_board.h"

#include <algorithm>
#include <limits>

namespace plenum::pipeline {

using schedule::Lane;
using schedule::ValueRef;

namespace {

std::size_t index_of(Lane lane) {
  return static_cast<std::size_t>(lane);
}

}  // namespace

// A reader in step t needs values of step t - staleness, and of t - 1 in any case (updates); a lane in step
// t + 1 may already make those of step t + 1.
ValueBoard::ValueBoard(std::size_t num_values, std::size_t staleness, std::uint64_t first_step)
    : first_step_(first_step), ring_(std::max<std::size_t>(1, staleness) + 2), stamps_(num_values * ring_) {}

bool ValueBoard::exists(const ValueRef& value, std::uint64_t step) const {
  if (step < first_step_ + value.age) return true;
  const std::uint64_t of_step = step - value.age;
  return stamps_[place(value.index, of_step)].end_step == of_step + 1;
}

bool ValueBoard::wait(Lane lane, std::span<const ValueRef> values, std::uint64_t step) {
  LaneWait& own = lanes_[index_of(lane)];
  std::unique_lock lock(mutex_);
  for (const ValueRef& value : values) {
    while (!is_closed_ && !exists(value, step)) {
      own.missing = value;
      own.step = step;
      own.woken.wait(lock);
    }
    own.missing.reset();
    if (is_closed_) return false;
  }
  return !is_closed_;
}

void ValueBoard::publish(Lane lane, std::span<const ValueRef> values, std::uint64_t step,
                         const tensor::QueueEvent* event) {
  const std::lock_guard lock(mutex_);
  for (const ValueRef& value : values) {
    if (step < first_step_ + value.age) continue;
    const std::uint64_t of_step = step - value.age;
    stamps_[place(value.index, of_step)] = {.end_step = of_step + 1, .event = event, .lane = lane};
  }
  for (LaneWait& waiting : lanes_) {
    if (waiting.missing && exists(*waiting.missing, waiting.step)) {
      waiting.missing.reset();
      waiting.woken.notify_one();
    }
  }
}

void ValueBoard::collect_events(Lane lane, std::span<const ValueRef> values, std::uint64_t step,
                                std::vector<const tensor::QueueEvent*>& events) const {
  events.clear();
  const std::lock_guard lock(mutex_);
  for (const ValueRef& value : values) {
    if (step < first_step_ + value.age) continue;
    const Stamp& stamp = stamps_[place(value.index, step - value.age)];
    if (stamp.event == nullptr || stamp.lane == lane) continue;
    if (std::find(events.begin(), events.end(), stamp.event) == events.end()) events.push_back(stamp.event);
  }
}

std::uint64_t ValueBoard::slowest_step() const {
  std::uint64_t slowest = std::numeric_limits<std::uint64_t>::max();
  for (const LaneWait& lane : lanes_) {
    if (lane.at_step) slowest = std::min(slowest, *lane.at_step);
  }
  return slowest;
}

void ValueBoard::wake_held_up() {
  for (LaneWait& lane : lanes_) {
    if (lane.is_held_up) lane.woken.notify_one();
  }
}

bool ValueBoard::begin_step(Lane lane, std::uint64_t step) {
  LaneWait& own = lanes_[index_of(lane)];
  std::unique_lock lock(mutex_);
  own.at_step = step;
  wake_held_up();
  own.is_held_up = true;
  own.woken.wait(lock, [&] { return is_closed_ || step <= slowest_step() + 1; });
  own.is_held_up = false;
  return !is_closed_;
}

void ValueBoard::retire(Lane lane) {
  const std::lock_guard lock(mutex_);
  lanes_[index_of(lane)].at_step.reset();
  wake_held_up();
}

void ValueBoard::enlist(Lane lane, std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  lanes_[index_of(lane)].at_step = step;
}

void ValueBoard::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  for (LaneWait& lane : lanes_) lane.woken.notify_all();
}

std::optional<ValueRef> ValueBoard::missing(Lane lane) const {
  const std::lock_guard lock(mutex_);
  return lanes_[index_of(lane)].missing;
}

}  // namespace plenum::pipeline

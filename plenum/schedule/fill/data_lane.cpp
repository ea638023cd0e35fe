#include "plenum/schedule/fill/data_lane.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace plenum::schedule {
namespace {

double first_common_time(const std::vector<DataLane>& lanes, std::span<const Rank> ranks, double start,
                         double seconds) {
  for (bool has_moved = true; has_moved && std::isfinite(start);) {
    has_moved = false;
    for (const Rank rank : ranks) {
      const double free = lanes[rank.index()].first_free(start, seconds);
      has_moved |= free > start;
      start = std::max(start, free);
    }
  }
  return start;
}

}  // namespace

DataLane::DataLane(const SteadyStep& step, Rank rank, std::size_t num_steps)
    : step_seconds_(step.seconds()), cycle_seconds_(step.seconds() * static_cast<double>(num_steps)) {
  for (const ActionTime& time : step.times(rank, Lane::DataParallel)) {
    order_.push_back(step.order(rank, Lane::DataParallel, ends_.size()));
    ends_.push_back(time.end);
    for (std::size_t i = 0; i < num_steps; ++i) {
      occupy(time.start + static_cast<double>(i) * step_seconds_, time.end - time.start);
    }
  }
}

double DataLane::first_free(double time, double seconds) const {
  if (busy_.empty()) return time;
  const double lap = std::floor(time / cycle_seconds_) * cycle_seconds_;
  double begin = time - lap;
  double offset = lap;
  const double rounding = SteadyStep::kRounding * step_seconds_;
  // What is free at the end of the circle goes on at its beginning.
  for (std::size_t laps = 0; laps < 2;) {
    auto next = busy_.upper_bound(begin + rounding);
    if (next != busy_.begin() && std::prev(next)->second > begin + rounding) {
      begin = std::prev(next)->second;
      continue;
    }
    const double limit = next != busy_.end() ? next->first : cycle_seconds_ + busy_.begin()->first;
    if (begin + seconds <= limit + rounding) return offset + begin;
    if (next == busy_.end()) {
      begin = 0;
      offset += cycle_seconds_;
      ++laps;
    } else {
      begin = next->second;
    }
  }
  return std::numeric_limits<double>::infinity();
}

void DataLane::occupy(double time, double seconds) {
  const double begin = time - std::floor(time / cycle_seconds_) * cycle_seconds_;
  const double end = begin + seconds;
  // Also an action that takes no time: a collective must not lie across the moment at which another one
  // waits.
  busy_[begin] = std::max(busy_[begin], std::min(end, cycle_seconds_));
  if (end > cycle_seconds_) busy_[0] = std::max(busy_[0], end - cycle_seconds_);
}

DataLane::Surroundings DataLane::surroundings(double time) const {
  if (ends_.empty()) {
    return {.step_before = std::numeric_limits<std::int64_t>::min(),
            .step_after = std::numeric_limits<std::int64_t>::max(),
            .next_end = std::numeric_limits<double>::infinity(),
            .before = kBeforeAll,
            .after = kBehindAll};
  }
  const auto count = static_cast<std::int64_t>(ends_.size());
  const std::int64_t next = num_done(time);
  const std::int64_t step_after = next / count;
  const auto place = [&](std::int64_t action) {
    return Place{action / count, order_[static_cast<std::size_t>(action % count)]};
  };
  return {.step_before = next > 0 ? (next - 1) / count : std::numeric_limits<std::int64_t>::min(),
          .step_after = step_after,
          .next_end = ends_[static_cast<std::size_t>(next - step_after * count)] +
                      static_cast<double>(step_after) * step_seconds_,
          .before = next > 0 ? place(next - 1) : kBeforeAll,
          .after = place(next)};
}

void DataLane::add_collective(double time, const Place& after) {
  Place& place = collectives_.try_emplace(time, after).first->second;
  place = std::max(place, after);
}

Place DataLane::after_collectives(double time) const {
  const double rounding = SteadyStep::kRounding * step_seconds_;
  Place after = kBeforeAll;
  for (auto other = collectives_.lower_bound(time - rounding);
       other != collectives_.end() && other->first <= time + rounding; ++other) {
    after = std::max(after, other->second);
  }
  return after;
}

std::int64_t DataLane::num_done(double time) const {
  const double rounding = SteadyStep::kRounding * step_seconds_;
  std::int64_t count = 0;
  for (const double end : ends_) {
    count += std::max<std::int64_t>(
        0, static_cast<std::int64_t>(std::floor((time + rounding - end) / step_seconds_)) + 1);
  }
  return count;
}

std::optional<CollectiveSlot> first_slot(const SteadyStep& step, const std::vector<DataLane>& lanes,
                                         std::span<const Rank> ranks, const CollectiveSlot& earliest,
                                         double seconds) {
  for (double start = first_common_time(lanes, ranks, earliest.start, seconds); std::isfinite(start);) {
    std::int64_t first_step = earliest.step;
    std::int64_t last_step = std::numeric_limits<std::int64_t>::max();
    double next_end = std::numeric_limits<double>::infinity();
    Place after = earliest.after;
    Place next = kBehindAll;
    for (const Rank rank : ranks) {
      const DataLane::Surroundings around = lanes[rank.index()].surroundings(start);
      after = std::max({after, around.before, lanes[rank.index()].after_collectives(start)});
      next = std::min(next, around.after);
      first_step = std::max(first_step, around.step_before);
      last_step = std::min(last_step, around.step_after);
      next_end = std::min(next_end, around.next_end);
    }
    if (first_step <= last_step && after < next) {
      return CollectiveSlot{
          .start = start, .step = std::clamp(step.step_at(start), first_step, last_step), .after = after};
    }
    start = first_common_time(lanes, ranks, next_end, seconds);
  }
  return std::nullopt;
}

}  // namespace plenum::schedule

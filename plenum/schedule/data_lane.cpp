#include "plenum/schedule/data_lane.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace plenum::schedule {
namespace {

/// Times that differ by less, as a part of the step, are one.
constexpr double kRounding = 1e-10;

}  // namespace

DataLane::DataLane(const SteadyStep& step, Rank rank, std::size_t num_steps)
    : step_seconds_(step.seconds()), cycle_seconds_(step.seconds() * static_cast<double>(num_steps)) {
  for (const ActionTime& time : step.times(rank, Lane::DataParallel)) {
    ends_.push_back(time.end);
    for (std::size_t i = 0; i < num_steps; ++i) {
      occupy(time.start + static_cast<double>(i) * step_seconds_, time.end - time.start);
    }
  }
}

double DataLane::first_free(double time, double seconds) const {
  const double lap = std::floor(time / cycle_seconds_) * cycle_seconds_;
  double begin = time - lap;
  double offset = lap;
  const double rounding = kRounding * step_seconds_;
  // What is free at the end of the circle goes on at its beginning.
  for (std::size_t laps = 0; laps < 2;) {
    auto next = busy_.upper_bound(begin + rounding);
    if (next != busy_.begin() && std::prev(next)->second > begin + rounding) {
      begin = std::prev(next)->second;
      continue;
    }
    double limit = next != busy_.end() ? next->first : cycle_seconds_;
    if (next == busy_.end() && !busy_.empty()) limit += std::max(0.0, busy_.begin()->first);
    if (next == busy_.end() && busy_.empty()) return offset + begin;
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
  if (seconds <= 0) return;
  const double begin = time - std::floor(time / cycle_seconds_) * cycle_seconds_;
  const double end = begin + seconds;
  busy_[begin] = std::min(end, cycle_seconds_);
  if (end > cycle_seconds_) busy_[0] = end - cycle_seconds_;
}

std::int64_t DataLane::num_done(double time) const {
  const double rounding = kRounding * step_seconds_;
  std::int64_t count = 0;
  for (const double end : ends_) {
    count += static_cast<std::int64_t>(std::floor((time + rounding - end) / step_seconds_)) + 1;
  }
  return count;
}

}  // namespace plenum::schedule

#pragma once

#include <cmath>

#include "plenum/base/check.h"
#include "plenum/schedule/simulate/cost_model.h"

namespace plenum::schedule {

/// What a cost model says of an action or of a message's way. Throws InternalError for what it must not say:
/// a time that is negative or not finite, with which no order of anything would mean anything. Times from
/// files, flags and clocks are refused or clamped where they are read.
inline double checked_seconds(const CostModel& costs, Rank rank, const Action& action) {
  const double seconds = costs.seconds(rank, action);
  base::check(seconds >= 0 && std::isfinite(seconds),
              "an action takes a time that is finite and not negative: {} on rank {}: {} s",
              traits_of(action.type).name, rank.value, seconds);
  return seconds;
}

inline double checked_latency_seconds(const CostModel& costs, Rank from, Rank to) {
  const double seconds = costs.latency_seconds(from, to);
  base::check(seconds >= 0 && std::isfinite(seconds),
              "a message travels for a time that is finite and not negative: from rank {} to {}: {} s",
              from.value, to.value, seconds);
  return seconds;
}

}  // namespace plenum::schedule

#pragma once

#include "plenum/schedule/fill/placement.h"

namespace plenum::schedule {

/// How old the refreshes are that the actions of every step use, in steps.
struct Freshness {
  double mean_age = 0;
  std::size_t max_age = 0;
};

/// Builds the schedule of a cycle: the steady step repeated, with the placed items between its actions. Those
/// of its own actions that may be stale get the age of the newest refresh that is done before them.
/// Overwrites `freshness`. Nothing if an age is greater than `max_age`.
std::optional<Schedule> filled_cycle(const SteadyStep& step, const Refresh& refresh,
                                     const Placement& placement, const CycleShape& shape, std::size_t max_age,
                                     Freshness& freshness);

}  // namespace plenum::schedule

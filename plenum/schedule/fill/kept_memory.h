#pragma once

#include <vector>

#include "plenum/schedule/fill/placement.h"

namespace plenum::schedule {

/// The most bytes that placed items keep alive on each rank at a time: what an item reads, from when the step
/// needs it no longer (or, where another item makes it, from when the first of it exists) until the item has
/// run.
std::vector<double> peak_kept_bytes(const SteadyStep& step, const Refresh& refresh,
                                    const Placement& placement, const CycleShape& shape);

}  // namespace plenum::schedule

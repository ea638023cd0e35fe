#pragma once

#include <cstdint>
#include <vector>

#include "plenum/packing/plan.h"

namespace plenum::packing {

/// Appends to `plan` packs for all of `remaining` (counts by length). Each pattern takes the longest sequence
/// left, then up to `num_short` of the shortest, then from the longest down whatever still fits within
/// capacity and depth of the plan; it is used as long as its sequences last. Without short ones this is first
/// fit decreasing; with them, a depth that binds is not wasted on packs of short sequences alone. The cost
/// does not depend on the number of sequences.
void append_mixed_fit(std::vector<std::uint64_t> remaining, std::int64_t num_short, PackingPlan& plan);

}  // namespace plenum::packing

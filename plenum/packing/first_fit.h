#pragma once

#include <cstdint>
#include <vector>

#include "plenum/packing/plan.h"

namespace plenum::packing {

/// Appends to `plan` packs for all of `remaining` (counts by length): each pattern takes, from the longest
/// down, as many of each length as fit within capacity and depth of the plan, and is used as long as its
/// sequences last. First fit decreasing on counts; the cost does not depend on the number of sequences.
void append_first_fit(std::vector<std::uint64_t> remaining, PackingPlan& plan);

}  // namespace plenum::packing

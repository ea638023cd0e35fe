#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plenum/packing/plan.h"

namespace plenum::packing {

/// Appends to `plan` packs for all of `remaining` (counts by length). Each pattern takes the longest sequence
/// left and then sequences that leave as little space as any choice could, up to the limits of `plan`
/// (minimum bin slack: Gupta and Ho, 1999); it is used as long as its sequences last. `preference` has every
/// length that remains: of choices that fill a pack alike, one from its front is taken. Where depth binds, a
/// fuller choice may be missed.
void append_fullest_fit(std::vector<std::uint64_t> remaining, std::span<const std::int32_t> preference,
                        PackingPlan& plan);

}  // namespace plenum::packing

#pragma once

#include <optional>
#include <string>

#include "plenum/packing/plan.h"

namespace plenum::packing {

/// The greatest capacity that pack_nnlshp takes: patterns grow with its square, time with its fourth power.
constexpr std::int64_t kNnlshpLargestCapacity = 1024;

constexpr std::int64_t kNnlshpGreatestDepth = 3;

/// Why pack_nnlshp cannot pack a problem; nothing if it can.
std::optional<std::string> reason_against_nnlshp(const PackingProblem& problem);

/// Packs by non-negative least-squares histogram packing (Krell et al., arXiv 2107.02027): finds weights
/// x >= 0 of all patterns of at most `depth` lengths that sum exactly to the capacity, such that the patterns
/// cover the histogram in the least-squares sense (lengths up to 8 weigh 0.09), rounds them, and gives each
/// sequence left over a pack of its own. Slots beyond the histogram stay empty, as in the published method,
/// where they are padding. For depths 2 and 3 only; throws UserError otherwise.
PackingPlan pack_nnlshp(const PackingProblem& problem);

}  // namespace plenum::packing

#pragma once

#include "plenum/packing/plan.h"

namespace plenum::packing {

/// Packs by shortest-pack-first histogram packing (Krell, Kosec, Perez, Fitzgibbon: Efficient Sequence
/// Packing without Cross-contamination; arXiv 2107.02027): lengths in descending order, each into the open
/// packs with the most space (worst fit), and what fits nowhere into new packs of its own. Throws UserError
/// if the problem cannot be packed.
PackingPlan pack_spfhp(const PackingProblem& problem);

}  // namespace plenum::packing

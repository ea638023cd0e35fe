#pragma once

#include "plenum/packing/plan.h"

namespace plenum::packing {

/// Packs by longest-pack-first histogram packing (the companion of SPFHP, Krell et al., arXiv 2107.02027):
/// lengths in descending order, each into the open packs with the least space that suffices (best fit), as
/// many copies per pack as fit; what fits nowhere opens packs filled with copies. Best-fit-decreasing on
/// counts. Throws UserError if the problem cannot be packed.
PackingPlan pack_lpfhp(const PackingProblem& problem);

}  // namespace plenum::packing

#pragma once

#include "plenum/packing/plan.h"

namespace plenum::packing {

/// Packs by best-fit-decreasing, one sequence at a time, as packers that see sequences instead of counts do:
/// O(n M / 64) at worst for n sequences and capacity M, near O(n) in practice. For comparison; `lpfhp` gives
/// as good a plan at a cost that does not depend on n. Throws UserError if the problem cannot be packed.
PackingPlan pack_best_fit_decreasing(const PackingProblem& problem);

}  // namespace plenum::packing

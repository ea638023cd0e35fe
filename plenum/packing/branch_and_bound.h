#pragma once

#include <cstdint>
#include <optional>

#include "plenum/packing/bounds.h"
#include "plenum/packing/deadline.h"
#include "plenum/packing/plan.h"

namespace plenum::packing {

struct SearchOutcome {
  std::optional<PackingPlan> plan;  ///< of at most the packs asked for
  bool refuted = false;             ///< there is no such plan: everything was tried
};

/// Looks for a plan of at most `num_packs` packs, pack by pack: the longest sequence left must lie in some
/// pack, so every way to fill that pack is tried (bin completion: Korf, 2002), first those that the linear
/// relaxation of what remains uses. What `weights`, which must be feasible, or the duals of that relaxation
/// prove to need more packs is left out. Both proofs are in integers, so what is refuted is so for certain.
/// Gives up after `max_nodes` beginnings of plans. For problems of some hundred packs: recursion is as deep
/// as there are packs.
SearchOutcome search_plan(const PackingProblem& problem, std::uint64_t num_packs, const DualWeights& weights,
                          std::int64_t max_nodes, const Deadline& deadline);

}  // namespace plenum::packing

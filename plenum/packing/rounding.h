#pragma once

#include <cstdint>

#include "plenum/packing/column_generation.h"
#include "plenum/packing/deadline.h"
#include "plenum/packing/plan.h"

namespace plenum::packing {

struct RoundingOptions {
  /// Fractional parts of at least this are rounded up before the relaxation is solved again. The smaller, the
  /// faster and the rougher.
  double threshold = 0.6;
  /// A relaxation that promises a plan of this many packs is not improved further.
  std::uint64_t good_enough_packs = 0;
};

/// Turns a solution of the linear relaxation into whole packs: takes the whole part of every activity, rounds
/// up the patterns most nearly whole, solves the relaxation of the sequences that remain, and so on until
/// none does. After the deadline the rest is packed greedily.
PackingPlan round_relaxation(const PackingProblem& problem, Relaxation relaxation,
                             const RoundingOptions& options, const Deadline& deadline);

}  // namespace plenum::packing

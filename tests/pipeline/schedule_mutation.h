#pragma once

#include <random>
#include <string>

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// A schedule with something broken in it, perhaps.
struct Mutant {
  Schedule schedule;
  std::string damage;  ///< "drop B0.1 on rank 2"
};

/// Damages a schedule at random in one to three places: drops, duplicates, swaps, moves or retargets actions,
/// on one rank or alike on all that have the same. The mutant differs from the original and is well formed.
Mutant mutate(const Schedule& original, std::mt19937_64& random);

}  // namespace plenum::schedule

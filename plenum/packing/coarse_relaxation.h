#pragma once

#include <cstdint>
#include <vector>

#include "plenum/packing/column_generation.h"
#include "plenum/packing/deadline.h"
#include "plenum/packing/plan.h"

namespace plenum::packing {

struct CoarseOptions {
  std::int64_t first_nodes = 128;  ///< about how many lengths get a price of their own at first
  std::int64_t max_nodes = 1024;   ///< and at most in the end
  /// Stop when this many packs are all that more nodes could add to the bound.
  double tolerance = 0.5;
};

/// Solves the linear relaxation with prices interpolated between few lengths (see PriceNodes), and gives more
/// lengths a price of their own where that raises the bound: where no pattern around a length is worth a
/// whole pack, its price is too low. The bound holds for the problem itself; the patterns, on average only.
Relaxation relax_coarsely(const PackingProblem& problem, std::vector<std::vector<std::int32_t>> known,
                          const CoarseOptions& options, const Deadline& deadline);

}  // namespace plenum::packing

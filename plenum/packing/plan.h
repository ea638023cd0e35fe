#pragma once

#include <cstdint>
#include <vector>

#include "plenum/packing/histogram.h"

namespace plenum::packing {

/// What is to be packed: sequences by length into packs of `capacity` tokens, at most `depth` sequences each.
struct PackingProblem {
  LengthHistogram histogram;
  std::int64_t capacity = 0;
  /// At most this many sequences in a pack. The capacity itself means unlimited: no pack holds more.
  std::int64_t depth = 0;
};

/// Packs that hold sequences of the same lengths.
struct PackPattern {
  std::vector<std::int32_t> lengths;  ///< descending; their sum is at most the capacity
  std::uint64_t count = 0;            ///< how many packs look like this
};

/// Which packs to make: a few hundred patterns and their counts, whatever the number of sequences.
struct PackingPlan {
  std::int64_t capacity = 0;
  std::int64_t depth = 0;
  std::vector<PackPattern> patterns;

  std::uint64_t num_packs() const;
};

/// Throws UserError, naming the length and what is wrong, unless every sequence can be packed: capacity and
/// depth at least 1, no length above the capacity, at least one sequence.
void check_problem(const PackingProblem& problem);

/// Throws InternalError unless `plan` packs exactly the sequences of `problem`, each once, within capacity
/// and depth.
void check_plan(const PackingPlan& plan, const PackingProblem& problem);

}  // namespace plenum::packing

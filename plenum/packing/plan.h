#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

/// The greatest capacity that a problem may have.
constexpr std::int64_t kGreatestCapacity = std::int64_t{1} << 24;

/// The most sequences and the most tokens that a problem may have, so that no sum overflows.
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 62;

/// Throws UserError, naming the length and what is wrong, unless every sequence can be packed: capacity (at
/// most kGreatestCapacity) and depth at least 1, lengths from 1 to the capacity, at least one sequence, at
/// most kMostTokens tokens.
void check_problem(const PackingProblem& problem);

/// What is wrong with `plan`, in one line, if it does not pack exactly the sequences of `problem`, each once,
/// within capacity and depth. Fit for plans that come from elsewhere.
std::optional<std::string> find_fault(const PackingPlan& plan, const PackingProblem& problem);

/// Throws InternalError if `plan` has a fault.
void check_plan(const PackingPlan& plan, const PackingProblem& problem);

}  // namespace plenum::packing

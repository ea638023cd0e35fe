#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plenum/packing/bounds.h"
#include "plenum/packing/knapsack.h"
#include "plenum/packing/plan.h"

namespace plenum::packing {

/// All ways to fill the pack of the longest sequence that weigh enough.
class PackFillings {
 public:
  struct Filling {
    std::vector<std::int32_t> lengths;  ///< descending; the first is the longest there is
    std::uint64_t weight = 0;
  };

  /// `weights` must be feasible.
  PackFillings(const PackingProblem& problem, const DualWeights& weights);

  struct Found {
    std::vector<Filling> fillings;  ///< the heaviest first, of equals the one with longer sequences
    bool all = true;                ///< false: there are too many to list
  };

  /// The fillings of at least `least_weight` from `counts` to which no further sequence could be added:
  /// taking one out of another pack for it would do no harm, so some best plan has such a pack.
  Found find(const std::vector<std::uint64_t>& counts, std::uint64_t least_weight);

 private:
  void fill(std::size_t from, std::int64_t tokens, std::int64_t depth, std::uint64_t weight,
            std::int64_t shortest_left_out);

  std::int64_t capacity_;
  std::int64_t depth_;
  std::vector<std::uint64_t> weights_;
  PatternKnapsack<std::int64_t> heaviest_;
  std::vector<std::pair<std::int32_t, std::uint64_t>> available_;  ///< lengths, descending, and their counts
  std::uint64_t least_weight_ = 0;
  std::vector<std::int32_t> chosen_;
  std::int64_t num_steps_ = 0;
  Found found_;
};

}  // namespace plenum::packing

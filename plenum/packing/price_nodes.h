#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plenum/packing/plan.h"
#include "plenum/packing/sparse_columns.h"

namespace plenum::packing {

/// Lengths with a price of their own. Between two nodes prices are interpolated, so that a linear program
/// with a few hundred rows prices thousands of lengths; with every length that occurs a node, it is the exact
/// one.
///
/// If lengths occur between two nodes, every length between them may be used and its price is linear; if none
/// does, none may be used. A most valuable pattern then needs at most one length that is not a node: two of
/// them can be moved against each other at no loss until one is.
class PriceNodes {
 public:
  /// `nodes` are lengths that occur, ascending, among them the shortest and the longest.
  PriceNodes(const PackingProblem& problem, std::vector<std::int32_t> nodes);

  const std::vector<std::int32_t>& nodes() const { return nodes_; }

  /// The number of sequences at each node; those between two nodes count for both, in proportion.
  const std::vector<double>& demand() const { return demand_; }

  /// The lengths that may be used, ascending.
  const std::vector<std::int32_t>& usable() const { return usable_; }

  /// The index of the last node at or below `length`; -1 below the first.
  std::int32_t node_below(std::int32_t length) const { return node_below_[static_cast<std::size_t>(length)]; }

  /// The share of each node in a pattern (descending), replacing what `column` held. A length that may not be
  /// used counts as the next shorter one that may.
  void spread(std::span<const std::int32_t> pattern, std::vector<SparseEntry>& column) const;

  /// Prices by length from prices by node; 0 for lengths that may not be used.
  std::vector<double> interpolate(std::span<const double> node_prices) const;

 private:
  /// How far `length` is on the way from the node below it to the next, as far as prices go.
  double way(std::int32_t length) const;

  std::vector<std::int32_t> nodes_;
  std::vector<std::int32_t> node_below_;  ///< by length; -1 below the first node
  std::vector<char> is_linear_;           ///< by node: whether lengths up to the next may be used
  std::vector<std::int32_t> usable_;
  std::vector<double> demand_;
};

/// Every length that occurs, ascending.
std::vector<std::int32_t> lengths_that_occur(const LengthHistogram& histogram);

}  // namespace plenum::packing

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plenum/packing/sparse_columns.h"

namespace plenum::packing {

/// The basis B of a simplex method as sparse triangular factors, B = L U up to permutations, followed by one
/// elementary matrix per exchanged column (product form). Pivots are chosen for sparsity (Markowitz, 1957)
/// among those large enough to be stable. Vectors are indexed by row on one side of B and by position (the
/// place of a column in the basis) on the other.
class BasisFactor {
 public:
  /// Factors the square matrix of these columns, replacing what was there. False if it is singular to working
  /// precision; the factor is then unusable until the next successful call.
  [[nodiscard]] bool factor(const SparseColumns& columns);

  /// Overwrites `x` with B^-1 x; rows on entry, positions on return.
  void solve(std::vector<double>& x);

  /// Overwrites `y` with B^-T y; positions on entry, rows on return.
  void solve_transposed(std::vector<double>& y);

  /// Replaces the column at `position` by one whose solve() is `direction`.
  void exchange(std::int32_t position, std::span<const double> direction);

  std::size_t num_exchanges() const { return exchanges_.size(); }

 private:
  struct Pivot {
    std::int32_t row = 0;
    std::int32_t position = 0;
    double value = 0;
  };

  std::vector<Pivot> pivots_;     ///< in order of elimination
  SparseColumns lower_;           ///< multipliers of each pivot, by row
  SparseColumns upper_rows_;      ///< the rest of each pivot's row, by position
  SparseColumns upper_columns_;   ///< the same numbers as columns, by row
  std::vector<Pivot> exchanges_;  ///< `row` is not used
  SparseColumns exchange_directions_;
  std::vector<double> work_;
};

}  // namespace plenum::packing

#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plenum::packing {

/// A matrix of few non-zeros per column, by columns.
struct SparseMatrix {
  struct Entry {
    std::uint32_t row = 0;
    double value = 0;
  };

  std::uint32_t num_rows = 0;
  std::vector<Entry> entries;                ///< column after column
  std::vector<std::uint32_t> column_starts;  ///< one more than there are columns

  std::size_t num_columns() const { return column_starts.size() - 1; }
  std::span<const Entry> column(std::size_t index) const {
    return {entries.data() + column_starts[index], entries.data() + column_starts[index + 1]};
  }
};

/// Solves min |A x - b| over x >= 0 by the active-set method of Lawson and Hanson (Solving Least Squares
/// Problems, 1974, chapter 23). Returns x, with at most num_rows positive elements.
///
/// The orthogonal factor is kept whole and updated (Householder to add a column, Givens to remove one), so a
/// sparse column enters at the cost of its non-zeros times the rows, and a step costs O(rows^2 + non-zeros)
/// instead of O(rows * columns).
std::vector<double> solve_nonnegative_least_squares(const SparseMatrix& matrix,
                                                    std::span<const double> target);

}  // namespace plenum::packing

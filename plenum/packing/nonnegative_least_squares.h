#pragma once

#include <span>
#include <vector>

#include "plenum/packing/sparse_columns.h"

namespace plenum::packing {

/// Solves min |A x - b| over x >= 0 by the active-set method of Lawson and Hanson (Solving Least Squares
/// Problems, 1974, chapter 23). Returns x, with at most as many positive
/// elements as there are rows. The target has one element per row; an entry's index is its row.
///
/// The orthogonal factor is kept whole and updated (Householder to add a column, Givens to remove one), so a
/// sparse column enters at the cost of its non-zeros times the rows, and a step costs O(rows^2 + non-zeros)
/// instead of O(rows * columns).
std::vector<double> solve_nonnegative_least_squares(const SparseColumns& matrix,
                                                    std::span<const double> target);

}  // namespace plenum::packing

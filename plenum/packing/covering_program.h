#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plenum/packing/basis_factor.h"
#include "plenum/packing/deadline.h"
#include "plenum/packing/sparse_columns.h"

namespace plenum::packing {

/// The linear program of packing: minimise the sum of x over patterns such that patterns * x covers the
/// demand of every row, x >= 0, by the primal simplex method. Rows are lengths in ascending order, and a slot
/// for one length may be given to the next shorter one at no cost. That changes no optimum and makes the
/// duals nondecreasing in length, which is most of what keeps column generation from wandering (Valerio de
/// Carvalho, 2005).
class CoveringProgram {
 public:
  /// Starts from one pattern per row that holds `num_copies` of that row and nothing else; they are patterns
  /// 0 to the number of rows - 1.
  CoveringProgram(std::vector<double> demand, const std::vector<double>& num_copies);

  void add_pattern(std::span<const SparseEntry> pattern);

  /// Pivots until no known pattern improves the objective. False if it had to stop before: out of time, or
  /// numerically stuck. The solution is feasible either way.
  [[nodiscard]] bool minimise(const Deadline& deadline);

  /// The price of one more of each row's demand; nondecreasing up to rounding after minimise().
  const std::vector<double>& duals() const { return duals_; }

  /// x, by pattern in order of addition.
  std::vector<double> activities();

 private:
  std::size_t num_rows() const { return demand_.size(); }
  double cost(std::size_t column) const { return column < num_rows() ? 0 : 1; }
  double reduced_cost(std::size_t column) const;
  bool refactor();
  void price();
  /// The column that improves the objective most per unit among a few candidates, which are renewed from all
  /// columns when none of them does; -1 if no column does.
  std::int64_t choose_entering();
  void renew_candidates();
  std::int64_t choose_leaving(std::span<const double> direction) const;
  void pivot(std::size_t entering, std::size_t position, std::span<const double> direction);

  std::vector<double> demand_;
  std::vector<double>
      perturbed_demand_;              ///< a hair above, so that no two rows run out at once and pivots cycle
  SparseColumns columns_;             ///< first one exchange per row (row 0: surplus), then patterns
  std::vector<std::size_t> basis_;    ///< the column at each position
  std::vector<char> is_basic_;        ///< by column
  std::vector<double> basic_values_;  ///< x of the basis, by position
  std::vector<double> duals_;
  std::vector<std::size_t> candidates_;  ///< columns that looked best when all were last priced
  BasisFactor factor_;
};

}  // namespace plenum::packing

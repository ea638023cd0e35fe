#include "plenum/packing/nonnegative_least_squares.h"

#include <cmath>

#include <gtest/gtest.h>

#include "plenum/base/philox.h"

namespace plenum::packing {
namespace {

SparseColumns sparse(const std::vector<std::vector<double>>& columns) {
  SparseColumns matrix;
  for (const std::vector<double>& column : columns) {
    std::vector<SparseEntry> entries;
    for (std::size_t row = 0; row < column.size(); ++row) {
      if (column[row] != 0) entries.push_back({static_cast<std::int32_t>(row), column[row]});
    }
    matrix.append(entries);
  }
  return matrix;
}

TEST(NonnegativeLeastSquares, SolvesWhatCanBeMetExactly) {
  const std::vector<double> x =
      solve_nonnegative_least_squares(sparse({{1, 0}, {1, 2}}), std::vector<double>{5, 4});
  EXPECT_NEAR(x[0], 3, 1e-12);
  EXPECT_NEAR(x[1], 2, 1e-12);
}

TEST(NonnegativeLeastSquares, KeepsAtZeroWhatWouldBeNegative) {
  // Without the sign, x would be (7, -2).
  const std::vector<double> x =
      solve_nonnegative_least_squares(sparse({{1, 0}, {1, 2}}), std::vector<double>{5, -4});
  EXPECT_NEAR(x[0], 5, 1e-12);
  EXPECT_EQ(x[1], 0);
}

TEST(NonnegativeLeastSquares, GivesZeroForAZeroTarget) {
  EXPECT_EQ(solve_nonnegative_least_squares(sparse({{1, 2}}), std::vector<double>{0, 0}),
            std::vector<double>{0});
}

// The conditions of Karush, Kuhn and Tucker: x >= 0, no descent along any column, none left along those in
// use.
TEST(NonnegativeLeastSquares, MeetsTheOptimalityConditionsOnRandomProblems) {
  const base::RandomFunction random(7, base::Purpose::Holdout);
  for (std::uint64_t problem = 0; problem < 300; ++problem) {
    std::uint32_t draw = 0;
    const auto unit = [&] { return base::to_unit_interval(random(problem, draw++)); };
    const auto num_rows = static_cast<std::uint32_t>(1 + unit() * 12);
    const auto num_columns = static_cast<std::size_t>(1 + unit() * 40);
    std::vector<std::vector<double>> columns(num_columns, std::vector<double>(num_rows));
    for (std::vector<double>& column : columns) {
      // Small whole numbers make many columns depend on each other.
      for (double& value : column)
        value = unit() < 0.6 ? 0 : std::floor(unit() * 4) - (problem % 2 == 0 ? 1 : 0);
    }
    std::vector<double> target(num_rows);
    for (double& value : target) value = std::floor(unit() * 1000) - 200;
    const std::vector<double> x = solve_nonnegative_least_squares(sparse(columns), target);

    std::vector<double> residual = target;
    for (std::size_t j = 0; j < num_columns; ++j) {
      ASSERT_GE(x[j], 0);
      for (std::uint32_t i = 0; i < num_rows; ++i) residual[i] -= columns[j][i] * x[j];
    }
    for (std::size_t j = 0; j < num_columns; ++j) {
      double descent = 0;
      for (std::uint32_t i = 0; i < num_rows; ++i) descent += columns[j][i] * residual[i];
      ASSERT_LE(descent, 1e-6) << "problem " << problem << " column " << j;
      ASSERT_GE(x[j] > 0 ? descent : 0, -1e-6) << "problem " << problem << " column " << j;
    }
  }
}

}  // namespace
}  // namespace plenum::packing

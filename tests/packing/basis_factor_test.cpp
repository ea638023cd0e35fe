#include "plenum/packing/basis_factor.h"

#include <random>

#include <gtest/gtest.h>

namespace plenum::packing {
namespace {

using Dense = std::vector<std::vector<double>>;  // by column

Dense random_basis(std::mt19937& random, std::size_t size) {
  Dense columns(size, std::vector<double>(size));
  for (std::size_t i = 0; i < size; ++i) {
    columns[i][i] = 1 + random() % 3;
    for (int extra = 0; extra < 3; ++extra)
      columns[i][random() % size] += static_cast<double>(random() % 7) - 2;
  }
  return columns;
}

SparseColumns sparse(const Dense& columns) {
  SparseColumns result;
  for (const std::vector<double>& column : columns) {
    std::vector<SparseEntry> entries;
    for (std::size_t row = 0; row < column.size(); ++row) {
      if (column[row] != 0) entries.push_back({static_cast<std::int32_t>(row), column[row]});
    }
    result.append(entries);
  }
  return result;
}

std::vector<double> random_vector(std::mt19937& random, std::size_t size) {
  std::vector<double> result(size);
  for (double& value : result) value = static_cast<double>(random() % 2001) / 1000 - 1;
  return result;
}

/// Checks B (B^-1 v) = v and B^T (B^-T v) = v.
void expect_solves(BasisFactor& factor, const Dense& columns, std::mt19937& random) {
  const std::size_t size = columns.size();
  const std::vector<double> right = random_vector(random, size);
  std::vector<double> x = right;
  factor.solve(x);
  std::vector<double> y = right;
  factor.solve_transposed(y);
  std::vector<double> product(size);
  double largest = 1;
  for (std::size_t column = 0; column < size; ++column) {
    double dot = 0;
    for (std::size_t row = 0; row < size; ++row) {
      product[row] += columns[column][row] * x[column];
      dot += columns[column][row] * y[row];
    }
    largest = std::max({largest, std::abs(x[column]), std::abs(y[column])});
    EXPECT_NEAR(dot, right[column], 1e-9 * largest);
  }
  for (std::size_t row = 0; row < size; ++row) EXPECT_NEAR(product[row], right[row], 1e-9 * largest);
}

TEST(BasisFactor, SolvesBothWaysBeforeAndAfterExchanges) {
  std::mt19937 random(5);
  int factored = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const std::size_t size = 1 + random() % 40;
    Dense columns = random_basis(random, size);
    BasisFactor factor;
    if (!factor.factor(sparse(columns))) continue;
    ++factored;
    expect_solves(factor, columns, random);
    for (std::size_t exchange = 0; exchange < 10; ++exchange) {
      const std::size_t position = random() % size;
      const std::vector<double> column = random_basis(random, size)[position];
      std::vector<double> direction = column;
      factor.solve(direction);
      if (std::abs(direction[position]) < 0.01) continue;
      factor.exchange(static_cast<std::int32_t>(position), direction);
      columns[position] = column;
    }
    expect_solves(factor, columns, random);
  }
  EXPECT_GT(factored, 40);
}

TEST(BasisFactor, ReportsASingularBasis) {
  BasisFactor factor;
  EXPECT_FALSE(factor.factor(sparse({{1, 2, 0}, {2, 4, 0}, {0, 0, 1}})));
  EXPECT_FALSE(factor.factor(sparse({{1, 0}, {0, 0}})));
  EXPECT_TRUE(factor.factor(sparse({{1, 2, 0}, {2, 3, 0}, {0, 0, 1}})));
}

}  // namespace
}  // namespace plenum::packing

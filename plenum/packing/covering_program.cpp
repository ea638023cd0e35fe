#include "plenum/packing/covering_program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::packing {

namespace {

/// A reduced cost above minus this is no improvement.
constexpr double kOptimal = 1e-9;
constexpr double kSmallestPivot = 1e-7;
constexpr double kRatioSlack = 1e-9;
constexpr double kPerturbation = 1e-6;
/// Of the greatest demand: below it a perturbation would drown in rounding.
constexpr double kPerturbationShare = 1e-11;
constexpr std::size_t kMaxExchanges = 64;
constexpr std::size_t kMaxCandidates = 32;

}  // namespace

CoveringProgram::CoveringProgram(std::vector<double> demand, const std::vector<double>& num_copies)
    : demand_(std::move(demand)), basis_(demand_.size()), is_basic_(demand_.size()) {
  base::check(num_copies.size() == num_rows(), "every row needs a first pattern: patterns={} rows={}",
              num_copies.size(), num_rows());
  for (std::size_t row = 0; row < num_rows(); ++row) {
    const SparseEntry exchange[] = {{static_cast<std::int32_t>(row), -1},
                                    {static_cast<std::int32_t>(row) - 1, 1}};
    columns_.append(std::span(exchange, row == 0 ? 1 : 2));
  }
  for (std::size_t row = 0; row < num_rows(); ++row) {
    const SparseEntry entry{static_cast<std::int32_t>(row), num_copies[row]};
    add_pattern(std::span(&entry, 1));
    basis_[row] = columns_.size() - 1;
    is_basic_[basis_[row]] = 1;
  }
  perturbed_demand_ = demand_;
  const double scale = kPerturbation + kPerturbationShare * *std::max_element(demand_.begin(), demand_.end());
  for (std::size_t row = 0; row < num_rows(); ++row) {
    // Multiples of the golden ratio modulo 1: no two alike, and no sums of few that are.
    const double golden = 0.6180339887498949 * static_cast<double>(row + 1);
    perturbed_demand_[row] += scale * (0.5 + 0.5 * (golden - std::floor(golden)));
  }
  base::check(refactor(), "the first basis is singular: rows={}", num_rows());
}

void CoveringProgram::add_pattern(std::span<const SparseEntry> pattern) {
  columns_.append(pattern);
  is_basic_.push_back(0);
}

double CoveringProgram::reduced_cost(std::size_t column) const {
  double sum = cost(column);
  for (const SparseEntry& entry : columns_[column]) {
    sum -= entry.value * duals_[static_cast<std::size_t>(entry.index)];
  }
  return sum;
}

bool CoveringProgram::refactor() {
  SparseColumns basis;
  for (const std::size_t column : basis_) basis.append(columns_[column]);
  if (!factor_.factor(basis)) return false;
  basic_values_ = perturbed_demand_;
  factor_.solve(basic_values_);
  // Rounding may leave a hair below zero; a negative x would make the ratio test step backwards.
  for (double& value : basic_values_) value = std::max(value, 0.0);
  return true;
}

void CoveringProgram::price() {
  duals_.resize(num_rows());
  for (std::size_t position = 0; position < num_rows(); ++position) duals_[position] = cost(basis_[position]);
  factor_.solve_transposed(duals_);
}

std::int64_t CoveringProgram::choose_leaving(std::span<const double> direction) const {
  // Two passes (Harris, 1973): how far every basic variable lets the entering one grow with a little slack,
  // then the largest pivot among those that block within it.
  double limit = std::numeric_limits<double>::infinity();
  for (std::size_t position = 0; position < direction.size(); ++position) {
    if (direction[position] > kSmallestPivot) {
      limit = std::min(limit, (basic_values_[position] + kRatioSlack) / direction[position]);
    }
  }
  std::int64_t leaving = -1;
  double largest = 0;
  for (std::size_t position = 0; position < direction.size(); ++position) {
    if (direction[position] > std::max(kSmallestPivot, largest) &&
        basic_values_[position] / direction[position] <= limit) {
      largest = direction[position];
      leaving = static_cast<std::int64_t>(position);
    }
  }
  return leaving;
}

std::int64_t CoveringProgram::choose_entering() {
  for (const bool renew : {false, true}) {
    if (renew) renew_candidates();
    double best = -kOptimal;
    std::int64_t entering = -1;
    for (const std::size_t column : candidates_) {
      if (is_basic_[column]) continue;
      const double reduced = reduced_cost(column);
      if (reduced < best) {
        best = reduced;
        entering = static_cast<std::int64_t>(column);
      }
    }
    if (entering >= 0) return entering;
  }
  return -1;
}

void CoveringProgram::renew_candidates() {
  std::vector<std::pair<double, std::size_t>> improving;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    if (is_basic_[column]) continue;
    const double reduced = reduced_cost(column);
    if (reduced < -kOptimal) improving.emplace_back(reduced, column);
  }
  const auto kept =
      improving.begin() + static_cast<std::ptrdiff_t>(std::min(improving.size(), kMaxCandidates));
  std::partial_sort(improving.begin(), kept, improving.end());
  candidates_.clear();
  for (auto candidate = improving.begin(); candidate != kept; ++candidate)
    candidates_.push_back(candidate->second);
}

void CoveringProgram::pivot(std::size_t entering, std::size_t position, std::span<const double> direction) {
  const double step = basic_values_[position] / direction[position];
  for (std::size_t i = 0; i < num_rows(); ++i) {
    basic_values_[i] = std::max(0.0, basic_values_[i] - step * direction[i]);
  }
  basic_values_[position] = step;
  is_basic_[basis_[position]] = 0;
  is_basic_[entering] = 1;
  basis_[position] = entering;
  factor_.exchange(static_cast<std::int32_t>(position), direction);
}

bool CoveringProgram::minimise(const Deadline& deadline) {
  candidates_.clear();
  std::vector<double> direction;
  while (true) {
    price();
    const std::int64_t entering = choose_entering();
    if (entering < 0) return true;
    if (deadline.passed()) return false;
    direction.assign(num_rows(), 0);
    for (const SparseEntry& entry : columns_[static_cast<std::size_t>(entering)]) {
      direction[static_cast<std::size_t>(entry.index)] = entry.value;
    }
    factor_.solve(direction);
    const std::int64_t leaving = choose_leaving(direction);
    if (leaving < 0) return false;
    pivot(static_cast<std::size_t>(entering), static_cast<std::size_t>(leaving), direction);
    if (factor_.num_exchanges() >= kMaxExchanges && !refactor()) return false;
  }
}

std::vector<double> CoveringProgram::activities() {
  std::vector<double> values = demand_;
  factor_.solve(values);
  std::vector<double> activities(columns_.size() - num_rows());
  for (std::size_t position = 0; position < num_rows(); ++position) {
    if (basis_[position] >= num_rows()) {
      activities[basis_[position] - num_rows()] = std::max(0.0, values[position]);
    }
  }
  return activities;
}

}  // namespace plenum::packing

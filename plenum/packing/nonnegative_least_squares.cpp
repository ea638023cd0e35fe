#include "plenum/packing/nonnegative_least_squares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plenum::packing {
namespace {

struct Rotation {
  double cosine = 1;
  double sine = 0;
};

/// The factorisation A_P = Q R of the columns in use, together with Q^T b. Q is square and stored by rows, R
/// by columns, so that every update runs along memory.
class UpdatedFactors {
 public:
  UpdatedFactors(const SparseColumns& matrix, std::span<const double> target)
      : matrix_(matrix),
        num_rows_(target.size()),
        q_(num_rows_ * num_rows_),
        rotated_target_(target.begin(), target.end()) {
    for (std::size_t row = 0; row < num_rows_; ++row) q_[row * num_rows_ + row] = 1;
  }

  /// Appends a column. Returns false, leaving all as it was, if it depends on those in use or if its own
  /// coefficient would not be positive.
  bool append(std::size_t column) {
    const std::size_t k = r_.size();
    if (k == num_rows_) return false;
    std::vector<double> rotated(num_rows_);
    double norm_squared = 0;
    for (const auto& [row, value] : matrix_[column]) {
      norm_squared += value * value;
      const double* q_row = q_.data() + static_cast<std::size_t>(row) * num_rows_;
      for (std::size_t i = 0; i < num_rows_; ++i) rotated[i] += value * q_row[i];
    }
    const double tail =
        std::sqrt(std::inner_product(rotated.begin() + static_cast<std::ptrdiff_t>(k), rotated.end(),
                                     rotated.begin() + static_cast<std::ptrdiff_t>(k), 0.0));
    constexpr double kIndependence = 1e-10;
    if (tail <= kIndependence * std::sqrt(norm_squared)) return false;

    // Householder vector v with (I - 2 v v^T / v^T v) rotated = diagonal e_k.
    const double diagonal = rotated[k] > 0 ? -tail : tail;
    std::vector<double> v(rotated.begin() + static_cast<std::ptrdiff_t>(k), rotated.end());
    v[0] -= diagonal;
    const double scale = 2 / std::inner_product(v.begin(), v.end(), v.begin(), 0.0);
    const double coefficient =
        (rotated_target_[k] - scale * dot(v, rotated_target_.data() + k) * v[0]) / diagonal;
    if (!(coefficient > 0)) return false;

    reflect(v, scale, rotated_target_.data() + k);
    for (std::size_t row = 0; row < num_rows_; ++row) reflect(v, scale, q_.data() + row * num_rows_ + k);
    rotated.resize(k + 1);
    rotated[k] = diagonal;
    r_.push_back(std::move(rotated));
    return true;
  }

  /// Removes the column at `position` of those in use.
  void remove(std::size_t position) {
    r_.erase(r_.begin() + static_cast<std::ptrdiff_t>(position));
    std::vector<Rotation> rotations;
    for (std::size_t j = position; j < r_.size(); ++j) {
      rotate(rotations, r_[j].data() + position);
      double& upper = r_[j][j];
      const double lower = r_[j][j + 1];
      const double length = std::hypot(upper, lower);
      rotations.push_back({upper / length, lower / length});
      upper = length;
      r_[j].pop_back();
    }
    rotate(rotations, rotated_target_.data() + position);
    for (std::size_t row = 0; row < num_rows_; ++row)
      rotate(rotations, q_.data() + row * num_rows_ + position);
  }

  /// The least-squares coefficients of the columns in use.
  std::vector<double> solve() const {
    std::vector<double> solution(rotated_target_.begin(),
                                 rotated_target_.begin() + static_cast<std::ptrdiff_t>(r_.size()));
    for (std::size_t j = r_.size(); j-- > 0;) {
      solution[j] /= r_[j][j];
      for (std::size_t i = 0; i < j; ++i) solution[i] -= r_[j][i] * solution[j];
    }
    return solution;
  }

 private:
  static double dot(const std::vector<double>& v, const double* values) {
    // Four partial sums: the compiler may not reorder one.
    double sums[4] = {};
    std::size_t i = 0;
    for (; i + 4 <= v.size(); i += 4) {
      for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += v[i + lane] * values[i + lane];
    }
    for (; i < v.size(); ++i) sums[0] += v[i] * values[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  static void reflect(const std::vector<double>& v, double scale, double* values) {
    const double factor = scale * dot(v, values);
    for (std::size_t i = 0; i < v.size(); ++i) values[i] -= factor * v[i];
  }

  static void rotate(const std::vector<Rotation>& rotations, double* values) {
    for (std::size_t i = 0; i < rotations.size(); ++i) {
      const double upper = values[i];
      const double lower = values[i + 1];
      values[i] = rotations[i].cosine * upper + rotations[i].sine * lower;
      values[i + 1] = rotations[i].cosine * lower - rotations[i].sine * upper;
    }
  }

  const SparseColumns& matrix_;
  std::size_t num_rows_;
  std::vector<double> q_;
  std::vector<double> rotated_target_;
  std::vector<std::vector<double>> r_;
};

class LawsonHanson {
 public:
  LawsonHanson(const SparseColumns& matrix, std::span<const double> target)
      : matrix_(matrix),
        target_(target),
        factors_(matrix, target),
        in_use_(matrix.size()),
        solution_(matrix.size()) {}

  std::vector<double> solve() {
    std::vector<double> gradient = descent();
    const double largest = gradient.empty() ? 0 : *std::max_element(gradient.begin(), gradient.end());
    constexpr double kRelativeDescent = 1e-13;
    const double smallest_descent = kRelativeDescent * std::max(largest, 0.0);
    const std::size_t most_steps = 3 * matrix_.size() + 10;
    for (std::size_t step = 0; step < most_steps; ++step) {
      if (!enter_steepest(gradient, smallest_descent)) break;
      leave_until_feasible();
      gradient = descent();
    }
    return solution_;
  }

 private:
  /// A^T (b - A x): how fast the error falls as each element of x grows.
  std::vector<double> descent() const {
    std::vector<double> residual(target_.begin(), target_.end());
    for (const std::size_t column : used_) {
      for (const auto& [row, value] : matrix_[column])
        residual[static_cast<std::size_t>(row)] -= value * solution_[column];
    }
    std::vector<double> gradient(matrix_.size());
    for (std::size_t column = 0; column < gradient.size(); ++column) {
      double sum = 0;
      for (const auto& [row, value] : matrix_[column]) sum += value * residual[static_cast<std::size_t>(row)];
      gradient[column] = in_use_[column] ? 0 : sum;
    }
    return gradient;
  }

  /// Takes the column of steepest descent into use. Those that cannot enter are set aside for this step.
  bool enter_steepest(std::vector<double>& gradient, double smallest_descent) {
    while (true) {
      const auto steepest = std::max_element(gradient.begin(), gradient.end());
      if (steepest == gradient.end() || *steepest <= smallest_descent) return false;
      const auto column = static_cast<std::size_t>(steepest - gradient.begin());
      if (factors_.append(column)) {
        in_use_[column] = true;
        used_.push_back(column);
        return true;
      }
      *steepest = 0;
    }
  }

  /// Moves to the least-squares solution of the columns in use, dropping those that become negative.
  void leave_until_feasible() {
    while (true) {
      const std::vector<double> goal = factors_.solve();
      double step = 1;
      std::size_t blocking = goal.size();
      for (std::size_t i = 0; i < goal.size(); ++i) {
        if (goal[i] > 0) continue;
        const double current = solution_[used_[i]];
        const double reach = current / (current - goal[i]);
        if (blocking == goal.size() || reach < step) {
          step = reach;
          blocking = i;
        }
      }
      for (std::size_t i = 0; i < goal.size(); ++i) {
        double& value = solution_[used_[i]];
        value += step * (goal[i] - value);
      }
      if (blocking == goal.size()) return;
      solution_[used_[blocking]] = 0;
      for (std::size_t i = used_.size(); i-- > 0;) {
        if (solution_[used_[i]] <= 0) drop(i);
      }
    }
  }

  void drop(std::size_t position) {
    factors_.remove(position);
    solution_[used_[position]] = 0;
    in_use_[used_[position]] = false;
    used_.erase(used_.begin() + static_cast<std::ptrdiff_t>(position));
  }

  const SparseColumns& matrix_;
  std::span<const double> target_;
  UpdatedFactors factors_;
  std::vector<bool> in_use_;
  std::vector<std::size_t> used_;
  std::vector<double> solution_;
};

}  // namespace

std::vector<double> solve_nonnegative_least_squares(const SparseColumns& matrix,
                                                    std::span<const double> target) {
  return LawsonHanson(matrix, target).solve();
}

}  // namespace plenum::packing

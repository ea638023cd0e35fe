#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "tests/reference/optimizer_step.h"

namespace plenum::reference {

/// Row-major.
struct Matrix {
  std::size_t rows, columns;
  std::vector<double> values;

  double at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};

inline Matrix transposed(const Matrix& x) {
  Matrix y{x.columns, x.rows, std::vector<double>(x.values.size())};
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (std::size_t j = 0; j < x.columns; ++j) y.values[j * x.rows + i] = x.at(i, j);
  }
  return y;
}

inline Matrix product(const Matrix& x, const Matrix& y) {
  Matrix z{x.rows, y.columns, std::vector<double>(x.rows * y.columns)};
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (std::size_t k = 0; k < x.columns; ++k) {
      for (std::size_t j = 0; j < y.columns; ++j) z.values[i * y.columns + j] += x.at(i, k) * y.at(k, j);
    }
  }
  return z;
}

inline Matrix plus(double a, const Matrix& x, double b, const Matrix& y) {
  Matrix z = x;
  for (std::size_t i = 0; i < z.values.size(); ++i) z.values[i] = a * x.values[i] + b * y.values[i];
  return z;
}

/// X = a X + (b A + c A A) X with A = X X^T, five times; of a tall matrix that of its transpose.
inline Matrix newton_schulz(const Matrix& matrix) {
  const bool is_tall = matrix.rows > matrix.columns;
  Matrix x = is_tall ? transposed(matrix) : matrix;
  for (int iteration = 0; iteration < 5; ++iteration) {
    const Matrix a = product(x, transposed(x));
    x = plus(3.4445, x, 1, product(plus(-4.7750, a, 2.0315, product(a, a)), x));
  }
  return is_tall ? transposed(x) : x;
}

/// Of one matrix: Muon's momentum is beta1 of the settings, and it has no second moment.
inline void muon_step(OptimizedTensor& tensor, std::size_t rows, std::size_t columns,
                      const OptimizerSettings& s) {
  Matrix direction{rows, columns, {}};
  for (std::size_t i = 0; i < tensor.weight.size(); ++i) {
    const double g = s.gradient_scale * tensor.gradient[i];
    double& m = tensor.first_moment[i];
    m = s.beta1 * m + (1 - s.beta1) * g;
    direction.values.push_back(s.beta1 * m + (1 - s.beta1) * g);
  }
  const double length = std::max(norm(direction.values), 1e-7);
  for (double& value : direction.values) value /= length;
  const Matrix update = newton_schulz(direction);
  const double factor = 0.2 * std::sqrt(static_cast<double>(std::max(rows, columns)));
  for (std::size_t i = 0; i < tensor.weight.size(); ++i)
    tensor.weight[i] -= s.learning_rate * (factor * update.values[i] + s.decay * tensor.weight[i]);
}

}  // namespace plenum::reference

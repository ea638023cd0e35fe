#pragma once

#include <cstddef>
#include <vector>

namespace plenum::reference {

// T rows, D input width, E output width.

struct LinearShape {
  std::size_t T = 0;
  std::size_t D = 0;
  std::size_t E = 0;
};

/// y = x w^T + b. An empty b stands for none.
inline std::vector<double> linear(const LinearShape& shape, const std::vector<double>& x_TD,
                                  const std::vector<double>& w_ED, const std::vector<double>& b_E) {
  const auto [T, D, E] = shape;
  std::vector<double> y_TE(T * E);
  for (std::size_t t = 0; t < T; ++t) {
    for (std::size_t e = 0; e < E; ++e) {
      double sum = b_E.empty() ? 0 : b_E[e];
      for (std::size_t d = 0; d < D; ++d) sum += x_TD[t * D + d] * w_ED[e * D + d];
      y_TE[t * E + e] = sum;
    }
  }
  return y_TE;
}

/// dx = dy w.
inline std::vector<double> linear_dx(const LinearShape& shape, const std::vector<double>& dy_TE,
                                     const std::vector<double>& w_ED) {
  const auto [T, D, E] = shape;
  std::vector<double> dx_TD(T * D);
  for (std::size_t t = 0; t < T; ++t) {
    for (std::size_t e = 0; e < E; ++e) {
      for (std::size_t d = 0; d < D; ++d) dx_TD[t * D + d] += dy_TE[t * E + e] * w_ED[e * D + d];
    }
  }
  return dx_TD;
}

/// dw = dy^T x.
inline std::vector<double> linear_dw(const LinearShape& shape, const std::vector<double>& x_TD,
                                     const std::vector<double>& dy_TE) {
  const auto [T, D, E] = shape;
  std::vector<double> dw_ED(E * D);
  for (std::size_t t = 0; t < T; ++t) {
    for (std::size_t e = 0; e < E; ++e) {
      for (std::size_t d = 0; d < D; ++d) dw_ED[e * D + d] += dy_TE[t * E + e] * x_TD[t * D + d];
    }
  }
  return dw_ED;
}

/// The sums over the rows of a matrix.
inline std::vector<double> column_sums(const std::vector<double>& matrix, std::size_t num_columns) {
  std::vector<double> sums(num_columns);
  for (std::size_t i = 0; i < matrix.size(); ++i) sums[i % num_columns] += matrix[i];
  return sums;
}

/// db = sum over rows of dy.
inline std::vector<double> linear_db(const LinearShape& shape, const std::vector<double>& dy_TE) {
  return column_sums(dy_TE, shape.E);
}

}  // namespace plenum::reference

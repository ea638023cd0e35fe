#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace plenum::reference {

// Kronecker factors of linear maps: K-FAC. Matrices are row-major.

/// The sum of x xT over rows of a matrix with W columns, of the columns [first, first + D).
inline std::vector<double> second_moment(const std::vector<double>& x_TW, std::size_t W, std::size_t first,
                                         std::size_t D,
                                         const std::vector<std::pair<std::size_t, std::size_t>>& rows) {
  std::vector<double> moment_DD(D * D);
  for (const auto& [begin, end] : rows) {
    for (std::size_t t = begin; t < end; ++t) {
      for (std::size_t i = 0; i < D; ++i) {
        for (std::size_t j = 0; j < D; ++j)
          moment_DD[i * D + j] += x_TW[t * W + first + i] * x_TW[t * W + first + j];
      }
    }
  }
  return moment_DD;
}

/// The inverse by Gauss and Jordan, with the largest pivot of each column.
inline std::vector<double> inverse(std::vector<double> matrix_NN, std::size_t N) {
  std::vector<double> inverse_NN(N * N);
  for (std::size_t i = 0; i < N; ++i) inverse_NN[i * N + i] = 1;
  for (std::size_t k = 0; k < N; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < N; ++i) {
      if (std::abs(matrix_NN[i * N + k]) > std::abs(matrix_NN[pivot * N + k])) pivot = i;
    }
    const double scale = 1 / matrix_NN[pivot * N + k];
    for (std::size_t j = 0; j < N; ++j) {
      std::swap(matrix_NN[k * N + j], matrix_NN[pivot * N + j]);
      std::swap(inverse_NN[k * N + j], inverse_NN[pivot * N + j]);
      matrix_NN[k * N + j] *= scale;
      inverse_NN[k * N + j] *= scale;
    }
    for (std::size_t i = 0; i < N; ++i) {
      const double factor = matrix_NN[i * N + k];
      if (i == k || factor == 0) continue;
      for (std::size_t j = 0; j < N; ++j) {
        matrix_NN[i * N + j] -= factor * matrix_NN[k * N + j];
        inverse_NN[i * N + j] -= factor * inverse_NN[k * N + j];
      }
    }
  }
  return inverse_NN;
}

inline double mean_of_diagonal(const std::vector<double>& matrix_NN, std::size_t N) {
  double trace = 0;
  for (std::size_t i = 0; i < N; ++i) trace += matrix_NN[i * N + i];
  return trace / static_cast<double>(N);
}

/// Adds sqrt(damping) pi sqrt(r) to the diagonal of A and sqrt(damping) / pi sqrt(r) to that of B.
inline void damp(std::vector<double>& a_DD, std::size_t D, std::vector<double>& b_EE, std::size_t E,
                 double damping) {
  const double a = mean_of_diagonal(a_DD, D);
  const double b = mean_of_diagonal(b_EE, E);
  const double pi = std::sqrt(a / b);
  const double r = std::sqrt(a * b);
  for (std::size_t i = 0; i < D; ++i) a_DD[i * D + i] += std::sqrt(damping) * pi * std::sqrt(r);
  for (std::size_t i = 0; i < E; ++i) b_EE[i * E + i] += std::sqrt(damping) / pi * std::sqrt(r);
}

/// B^-1 G A^-1, rescaled to the norm of G.
inline std::vector<double> preconditioned(const std::vector<double>& inverse_a_DD, std::size_t D,
                                          const std::vector<double>& inverse_b_EE, std::size_t E,
                                          const std::vector<double>& gradient_ED) {
  std::vector<double> half_ED(E * D);
  for (std::size_t e = 0; e < E; ++e) {
    for (std::size_t k = 0; k < D; ++k) {
      for (std::size_t d = 0; d < D; ++d)
        half_ED[e * D + d] += gradient_ED[e * D + k] * inverse_a_DD[k * D + d];
    }
  }
  std::vector<double> whole_ED(E * D);
  for (std::size_t e = 0; e < E; ++e) {
    for (std::size_t k = 0; k < E; ++k) {
      for (std::size_t d = 0; d < D; ++d) whole_ED[e * D + d] += inverse_b_EE[e * E + k] * half_ED[k * D + d];
    }
  }
  double before = 0;
  double after = 0;
  for (std::size_t i = 0; i < E * D; ++i) {
    before += gradient_ED[i] * gradient_ED[i];
    after += whole_ED[i] * whole_ED[i];
  }
  if (before == 0) return gradient_ED;
  for (double& value : whole_ED) value *= std::sqrt(before / after);
  return whole_ED;
}

}  // namespace plenum::reference

#include "tests/pipeline/toy_matrix.h"

#include <cmath>

namespace plenum::pipeline {
namespace {

Values product(const Values& left, const Values& right, std::size_t n) {
  Values result(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t j = 0; j < n; ++j) result[i * n + j] += left[i * n + k] * right[k * n + j];
    }
  }
  return result;
}

/// Turns rows and columns p, q so that matrix(p, q) vanishes; collects the turns in `vectors`.
void rotate(Values& matrix, Values& vectors, std::size_t p, std::size_t q, std::size_t n) {
  if (matrix[p * n + q] == 0) return;
  const double theta = (matrix[q * n + q] - matrix[p * n + p]) / (2 * matrix[p * n + q]);
  const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::sqrt(theta * theta + 1));
  const double c = 1 / std::sqrt(t * t + 1);
  const double s = t * c;
  for (std::size_t k = 0; k < n; ++k) {
    const double kp = matrix[k * n + p];
    const double kq = matrix[k * n + q];
    matrix[k * n + p] = c * kp - s * kq;
    matrix[k * n + q] = s * kp + c * kq;
  }
  for (std::size_t k = 0; k < n; ++k) {
    const double pk = matrix[p * n + k];
    const double qk = matrix[q * n + k];
    matrix[p * n + k] = c * pk - s * qk;
    matrix[q * n + k] = s * pk + c * qk;
    const double vp = vectors[k * n + p];
    const double vq = vectors[k * n + q];
    vectors[k * n + p] = c * vp - s * vq;
    vectors[k * n + q] = s * vp + c * vq;
  }
}

}  // namespace

Values product(const Values& left, const Values& middle, const Values& right, std::size_t n) {
  return product(product(left, middle, n), right, n);
}

double trace_of(const Values& matrix, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += matrix[i * n + i];
  return sum;
}

void add_to_diagonal(Values& matrix, double value, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) matrix[i * n + i] += value;
}

void invert(Values& matrix, std::size_t n) {
  for (std::size_t p = 0; p < n; ++p) {
    const double pivot = matrix[p * n + p];
    matrix[p * n + p] = 1;
    for (std::size_t j = 0; j < n; ++j) matrix[p * n + j] /= pivot;
    for (std::size_t i = 0; i < n; ++i) {
      if (i == p) continue;
      const double factor = matrix[i * n + p];
      matrix[i * n + p] = 0;
      for (std::size_t j = 0; j < n; ++j) matrix[i * n + j] -= factor * matrix[p * n + j];
    }
  }
}

Values inverse_fourth_root(const Values& matrix, std::size_t n) {
  Values values = matrix;
  Values vectors(n * n, 0.0);
  add_to_diagonal(vectors, 1.0, n);
  constexpr int kNumSweeps = 12;
  for (int sweep = 0; sweep < kNumSweeps; ++sweep) {
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) rotate(values, vectors, p, q, n);
    }
  }
  Values root(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < n; ++k) {
        root[i * n + j] += vectors[i * n + k] * std::pow(values[k * n + k], -0.25) * vectors[j * n + k];
      }
    }
  }
  return root;
}

}  // namespace plenum::pipeline

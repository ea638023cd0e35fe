#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "tests/reference/newton_schulz.h"
#include "tests/reference/optimizer_step.h"

namespace plenum::reference {

/// Rows made orthonormal in their order.
inline Matrix orthonormalised(Matrix x) {
  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t j = 0; j < x.rows; ++j) {
      for (std::size_t i = 0; i < j; ++i) {
        double part = 0;
        for (std::size_t k = 0; k < x.columns; ++k) part += x.at(i, k) * x.at(j, k);
        for (std::size_t k = 0; k < x.columns; ++k) x.values[j * x.columns + k] -= part * x.at(i, k);
      }
      double squares = 0;
      for (std::size_t k = 0; k < x.columns; ++k) squares += x.at(j, k) * x.at(j, k);
      for (std::size_t k = 0; k < x.columns; ++k) x.values[j * x.columns + k] /= std::sqrt(squares);
    }
  }
  return x;
}

/// What SOAP keeps of one matrix; sides that are not rotated have empty factors.
struct SoapMatrix {
  Matrix weight, first, second;
  Matrix row_factor, row_basis, column_factor, column_basis;
};

inline void soap_iterate(const Matrix& factor, Matrix& basis) {
  double trace = 0;
  for (std::size_t i = 0; i < factor.rows; ++i) trace += factor.at(i, i);
  const double shift = trace > 0 ? 1e-5 * trace / static_cast<double>(factor.rows) : 1;
  basis = orthonormalised(plus(1, product(basis, factor), shift, basis));
}

/// P x Q^T, or back P^T x Q.
inline Matrix soap_rotated(const SoapMatrix& state, Matrix x, bool is_back) {
  if (state.row_basis.rows > 0) x = product(is_back ? transposed(state.row_basis) : state.row_basis, x);
  if (state.column_basis.rows > 0)
    x = product(x, is_back ? state.column_basis : transposed(state.column_basis));
  return x;
}

/// One step on a clipped gradient: beta1 of the settings is of all averages, correction1 of both moments.
inline void soap_step(SoapMatrix& state, const Matrix& gradient, const OptimizerSettings& s,
                      int num_iterations) {
  const double rest = 1 - s.beta1;
  if (state.row_basis.rows > 0)
    state.row_factor = plus(s.beta1, state.row_factor, rest, product(gradient, transposed(gradient)));
  if (state.column_basis.rows > 0)
    state.column_factor = plus(s.beta1, state.column_factor, rest, product(transposed(gradient), gradient));
  for (int i = 0; i < num_iterations; ++i) {
    if (state.row_basis.rows > 0) soap_iterate(state.row_factor, state.row_basis);
    if (state.column_basis.rows > 0) soap_iterate(state.column_factor, state.column_basis);
  }
  state.first = plus(s.beta1, state.first, rest, gradient);
  const Matrix rotated = soap_rotated(state, gradient, false);
  Matrix direction = soap_rotated(state, state.first, false);
  for (std::size_t i = 0; i < direction.values.size(); ++i) {
    double& v = state.second.values[i];
    v = s.beta1 * v + rest * rotated.values[i] * rotated.values[i];
    direction.values[i] = direction.values[i] / s.correction1 / (std::sqrt(v / s.correction1) + s.epsilon);
  }
  state.weight = plus(1 - s.learning_rate * s.decay, state.weight, -s.learning_rate,
                      soap_rotated(state, direction, true));
}

}  // namespace plenum::reference

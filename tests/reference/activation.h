#pragma once

#include <cmath>
#include <numbers>

namespace plenum::reference {

inline double gelu(double x) {
  return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
}

inline double gelu_derivative(double x) {
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
  return 0.5 * std::erfc(-x / std::numbers::sqrt2) + x * density;
}

}  // namespace plenum::reference

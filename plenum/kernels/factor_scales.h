#pragma once

namespace plenum::kernels {

// What CPU and GPU compute alike of the numbers of a factor pair. For kernels/cpu and kernels/cuda only.

/// An element of a factor: newest * scale * sum + kept * average, where there is an average.
struct FactorParts {
  float newest = 1;
  float kept = 0;
};

/// The parts of a factor of which the average has so much weight so far.
constexpr FactorParts factor_parts(double scale, double keep, bool has_average, double average_weight) {
  if (!has_average) return {.newest = static_cast<float>(scale)};
  const double weight = keep * average_weight + (1 - keep);
  return {.newest = static_cast<float>((1 - keep) * scale / weight),
          .kept = static_cast<float>(keep / weight)};
}

/// What is added to the diagonals.
struct Damping {
  double a = 0;
  double b = 0;
  bool is_usable = false;
};

/// From the means of the diagonals; `root` takes square roots of doubles.
template <typename Root>
constexpr Damping damping_of(double mean_a, double mean_b, double damping, Root root) {
  constexpr double kMost = 1e30;  // beyond it, and where it is no number, nothing is of use
  const double pi = root(mean_a / mean_b);
  const double part = root(damping * root(mean_a * mean_b));
  const double a = pi * part;
  const double b = part / pi;
  return {a, b, mean_a > 0 && mean_b > 0 && a > 0 && b > 0 && a < kMost && b < kMost};
}

/// Of the damping on a factor, what a pivot must have left: no pivot of a factor in exact numbers is below
/// it.
inline constexpr double kPivotPart = 0.5;

}  // namespace plenum::kernels

#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace plenum::reference {

struct OptimizerSettings {
  double learning_rate, beta1, beta2, epsilon, decay, correction1, correction2, gradient_scale;
};

/// The state of one tensor.
struct OptimizedTensor {
  std::vector<double> weight, gradient, first_moment, second_moment;
};

/// The direction that a step goes, after it has updated the moments.
inline std::vector<double> direction(OptimizedTensor& tensor, const OptimizerSettings& s) {
  std::vector<double> result;
  for (std::size_t i = 0; i < tensor.weight.size(); ++i) {
    const double g = s.gradient_scale * tensor.gradient[i];
    double& m = tensor.first_moment[i];
    double& v = tensor.second_moment[i];
    m = s.beta1 * m + (1 - s.beta1) * g;
    v = s.beta2 * v + (1 - s.beta2) * g * g;
    result.push_back(m / s.correction1 / (std::sqrt(v / s.correction2) + s.epsilon) +
                     s.decay * tensor.weight[i]);
  }
  return result;
}

inline void adam_step(OptimizedTensor& tensor, const OptimizerSettings& s) {
  const std::vector<double> u = direction(tensor, s);
  for (std::size_t i = 0; i < u.size(); ++i) tensor.weight[i] -= s.learning_rate * u[i];
}

inline double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

inline void lamb_step(OptimizedTensor& tensor, const OptimizerSettings& s, bool has_ratio) {
  const std::vector<double> u = direction(tensor, s);
  const double weight_norm = norm(tensor.weight);
  const double update_norm = norm(u);
  const double ratio = has_ratio && weight_norm > 0 && update_norm > 0 ? weight_norm / update_norm : 1;
  for (std::size_t i = 0; i < u.size(); ++i) tensor.weight[i] -= s.learning_rate * ratio * u[i];
}

}  // namespace plenum::reference

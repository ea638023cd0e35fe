#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "tests/reference/dropout.h"

namespace plenum::reference {

struct LayerNorm {
  std::vector<double> z;
  std::vector<double> y;
  std::vector<double> mean;
  std::vector<double> inverse_deviation;
};

/// y = gamma (z - mean) / sqrt(var + epsilon) + beta, row by row.
inline LayerNorm layer_norm(const std::vector<double>& z, const std::vector<double>& gamma,
                            const std::vector<double>& beta, double epsilon) {
  const std::size_t width = gamma.size();
  LayerNorm result{.z = z, .y = std::vector<double>(z.size()), .mean = {}, .inverse_deviation = {}};
  for (std::size_t row = 0; row < z.size() / width; ++row) {
    double mean = 0;
    for (std::size_t i = 0; i < width; ++i) mean += z[row * width + i] / static_cast<double>(width);
    double variance = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const double difference = z[row * width + i] - mean;
      variance += difference * difference / static_cast<double>(width);
    }
    const double inverse_deviation = 1 / std::sqrt(variance + epsilon);
    for (std::size_t i = 0; i < width; ++i) {
      result.y[row * width + i] = gamma[i] * (z[row * width + i] - mean) * inverse_deviation + beta[i];
    }
    result.mean.push_back(mean);
    result.inverse_deviation.push_back(inverse_deviation);
  }
  return result;
}

struct LayerNormGradient {
  std::vector<double> dz;
  std::vector<double> dgamma;
  std::vector<double> dbeta;
};

/// The gradient of the sum of dy y.
inline LayerNormGradient layer_norm_gradient(const std::vector<double>& z, const std::vector<double>& gamma,
                                             const std::vector<double>& dy, double epsilon) {
  const std::size_t width = gamma.size();
  const LayerNorm at = layer_norm(z, gamma, gamma, epsilon);
  LayerNormGradient result{.dz = std::vector<double>(z.size()),
                           .dgamma = std::vector<double>(width),
                           .dbeta = std::vector<double>(width)};
  for (std::size_t row = 0; row < z.size() / width; ++row) {
    const auto zhat = [&](std::size_t i) {
      return (z[row * width + i] - at.mean[row]) * at.inverse_deviation[row];
    };
    const auto g = [&](std::size_t i) { return gamma[i] * dy[row * width + i]; };
    double mean_g = 0;
    double mean_g_zhat = 0;
    for (std::size_t i = 0; i < width; ++i) {
      mean_g += g(i) / static_cast<double>(width);
      mean_g_zhat += g(i) * zhat(i) / static_cast<double>(width);
      result.dgamma[i] += dy[row * width + i] * zhat(i);
      result.dbeta[i] += dy[row * width + i];
    }
    for (std::size_t i = 0; i < width; ++i) {
      result.dz[row * width + i] = at.inverse_deviation[row] * (g(i) - mean_g - zhat(i) * mean_g_zhat);
    }
  }
  return result;
}

/// Every element of rows of activations by its dropout factor.
inline std::vector<double> drop_rows(const kernels::Dropout& dropout, std::vector<double> x,
                                     const std::vector<std::int64_t>& samples,
                                     const std::vector<std::int32_t>& positions) {
  const std::size_t width = samples.empty() ? 0 : x.size() / samples.size();
  for (std::size_t row = 0; row < samples.size(); ++row) {
    for (std::size_t i = 0; i < width; ++i) {
      x[row * width + i] *=
          dropout_factor(dropout, static_cast<std::uint64_t>(samples[row]),
                         static_cast<std::uint32_t>(positions[row]), static_cast<std::uint32_t>(i));
    }
  }
  return x;
}

}  // namespace plenum::reference

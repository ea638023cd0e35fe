#pragma once

#include "tests/reference/attention.h"

namespace plenum::reference {

/// The gradient of attention() with respect to qkv, [T, 3, H, K], for the gradient of its context. Written
/// straight from the chain rule: no identity of the softmax is used but its own derivative.
inline std::vector<double> attention_gradient(const AttentionShape& shape, const std::vector<double>& qkv,
                                              const kernels::Dropout& dropout,
                                              const std::vector<double>& dcontext) {
  const auto& [rows, heads, width, starts, lengths, samples] = shape;
  std::vector<double> dqkv(rows * 3 * heads * width);
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  for (std::size_t s = 0; s < starts.size(); ++s) {
    const auto start = static_cast<std::size_t>(starts[s]);
    const auto length = static_cast<std::size_t>(lengths[s]);
    for (std::size_t head = 0; head < heads; ++head) {
      const auto at = [&, heads = heads, width = width](std::size_t i, std::size_t which) {
        return (((start + i) * 3 + which) * heads + head) * width;
      };
      const auto dot = [&, width = width](const double* a, const double* b) {
        double sum = 0;
        for (std::size_t k = 0; k < width; ++k) sum += a[k] * b[k];
        return sum;
      };
      std::vector<double> weights(length);
      std::vector<double> factors(length);
      std::vector<double> dweights(length);
      for (std::size_t i = 0; i < length; ++i) {
        const double* dout = dcontext.data() + ((start + i) * heads + head) * width;
        double sum = 0;
        for (std::size_t j = 0; j < length; ++j) {
          weights[j] = std::exp(dot(&qkv[at(i, 0)], &qkv[at(j, 1)]) * scale);
          sum += weights[j];
        }
        double mean = 0;  // of the weights' gradients, by weight
        for (std::size_t j = 0; j < length; ++j) {
          weights[j] /= sum;
          factors[j] =
              dropout_factor(dropout, static_cast<std::uint64_t>(samples[s]), static_cast<std::uint32_t>(i),
                             static_cast<std::uint32_t>((head << 20) + j));
          dweights[j] = factors[j] * dot(dout, &qkv[at(j, 2)]);
          mean += weights[j] * dweights[j];
        }
        for (std::size_t j = 0; j < length; ++j) {
          const double dscore = weights[j] * (dweights[j] - mean) * scale;
          for (std::size_t k = 0; k < width; ++k) {
            dqkv[at(i, 0) + k] += dscore * qkv[at(j, 1) + k];
            dqkv[at(j, 1) + k] += dscore * qkv[at(i, 0) + k];
            dqkv[at(j, 2) + k] += factors[j] * weights[j] * dout[k];
          }
        }
      }
    }
  }
  return dqkv;
}

}  // namespace plenum::reference

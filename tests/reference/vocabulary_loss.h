#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plenum::reference {

// M masked positions, D width, V words; everything row-major.

/// The cross-entropy of softmax(h w^T + b) against the labels, and its gradients, as the formulas say. The
/// label -1 stands for none.
struct VocabularyLoss {
  std::size_t masked, width, vocabulary;
  std::vector<double> h_MD, w_VD, b_V;
  std::vector<std::int32_t> label_M;

  double logit(std::size_t row, std::size_t word) const {
    double sum = b_V[word];
    for (std::size_t i = 0; i < width; ++i) sum += h_MD[row * width + i] * w_VD[word * width + i];
    return sum;
  }

  double lse(std::size_t row) const {
    double maximum = logit(row, 0);
    for (std::size_t word = 1; word < vocabulary; ++word) maximum = std::max(maximum, logit(row, word));
    double sum = 0;
    for (std::size_t word = 0; word < vocabulary; ++word) sum += std::exp(logit(row, word) - maximum);
    return maximum + std::log(sum);
  }

  double loss(std::size_t row) const {
    return label_M[row] < 0 ? 0 : lse(row) - logit(row, static_cast<std::size_t>(label_M[row]));
  }

  double total_loss() const {
    double sum = 0;
    for (std::size_t row = 0; row < masked; ++row) sum += loss(row);
    return sum;
  }

  /// Of scale * total_loss().
  struct Gradients {
    std::vector<double> dh_MD, dw_VD, db_V;
  };
  Gradients gradients(double scale) const {
    Gradients d{std::vector<double>(masked * width), std::vector<double>(vocabulary * width),
                std::vector<double>(vocabulary)};
    for (std::size_t row = 0; row < masked; ++row) {
      if (label_M[row] < 0) continue;
      const double log_sum = lse(row);
      for (std::size_t word = 0; word < vocabulary; ++word) {
        const bool is_label = word == static_cast<std::size_t>(label_M[row]);
        const double dlogit = scale * (std::exp(logit(row, word) - log_sum) - (is_label ? 1.0 : 0.0));
        d.db_V[word] += dlogit;
        for (std::size_t i = 0; i < width; ++i) {
          d.dh_MD[row * width + i] += dlogit * w_VD[word * width + i];
          d.dw_VD[word * width + i] += dlogit * h_MD[row * width + i];
        }
      }
    }
    return d;
  }
};

}  // namespace plenum::reference

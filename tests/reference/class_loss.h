#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plenum::reference {

/// -log softmax(logits)[label], summed over the rows of [S, C].
inline double class_loss(const std::vector<double>& logits_SC, const std::vector<std::int32_t>& label_S) {
  const std::size_t classes = label_S.empty() ? 0 : logits_SC.size() / label_S.size();
  double total = 0;
  for (std::size_t row = 0; row < label_S.size(); ++row) {
    const double* logits = logits_SC.data() + row * classes;
    const double label_logit = logits[label_S[row]];
    double sum = 0;
    for (std::size_t i = 0; i < classes; ++i) sum += std::exp(logits[i] - label_logit);
    total += std::log(sum);
  }
  return total;
}

}  // namespace plenum::reference

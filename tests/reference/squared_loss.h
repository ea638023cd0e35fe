#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plenum::reference {

/// (logit - y)^2, summed over rows whose labels are the bits of y; of the label -1 nothing.
inline double squared_loss(const std::vector<double>& logits_M, const std::vector<std::int32_t>& label_M) {
  double total = 0;
  for (std::size_t row = 0; row < label_M.size(); ++row) {
    if (label_M[row] == -1) continue;
    const double error = logits_M[row] - double{std::bit_cast<float>(label_M[row])};
    total += error * error;
  }
  return total;
}

}  // namespace plenum::reference

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/reference/dropout.h"

namespace plenum::reference {

struct AttentionShape {
  std::size_t rows = 0;   ///< T
  std::size_t heads = 0;  ///< H
  std::size_t width = 0;  ///< K
  std::vector<std::int32_t> starts;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> samples;
};

struct Attention {
  std::vector<double> context;  ///< [T, H, K]
  std::vector<double> lse;      ///< [H, T]
};

/// O = dropout(softmax(Q K^T / sqrt K)) V, sequence by sequence and head by head. qkv is [T, 3, H, K].
inline Attention attention(const AttentionShape& shape, const std::vector<double>& qkv,
                           const kernels::Dropout& dropout) {
  const auto [rows, heads, width, starts, lengths, samples] = shape;
  Attention result{.context = std::vector<double>(rows * heads * width),
                   .lse = std::vector<double>(heads * rows)};
  const auto at = [&](std::size_t row, std::size_t which, std::size_t head) {
    return qkv.data() + ((row * 3 + which) * heads + head) * width;
  };
  for (std::size_t s = 0; s < starts.size(); ++s) {
    const auto start = static_cast<std::size_t>(starts[s]);
    const auto length = static_cast<std::size_t>(lengths[s]);
    for (std::size_t head = 0; head < heads; ++head) {
      for (std::size_t i = 0; i < length; ++i) {
        std::vector<double> weights(length);
        double sum = 0;
        for (std::size_t j = 0; j < length; ++j) {
          double score = 0;
          for (std::size_t k = 0; k < width; ++k)
            score += at(start + i, 0, head)[k] * at(start + j, 1, head)[k];
          weights[j] = std::exp(score / std::sqrt(static_cast<double>(width)));
          sum += weights[j];
        }
        result.lse[head * rows + start + i] = std::log(sum);
        for (std::size_t j = 0; j < length; ++j) {
          const double factor =
              dropout_factor(dropout, static_cast<std::uint64_t>(samples[s]), static_cast<std::uint32_t>(i),
                             static_cast<std::uint32_t>((head << 20) + j));
          for (std::size_t k = 0; k < width; ++k) {
            result.context[((start + i) * heads + head) * width + k] +=
                factor * weights[j] / sum * at(start + j, 2, head)[k];
          }
        }
      }
    }
  }
  return result;
}

}  // namespace plenum::reference

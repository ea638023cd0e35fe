#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plenum::reference {

/// The mean of the rows of each group, rows of `width`; those of group -1 are left out.
inline std::vector<double> pool_rows(const std::vector<double>& x, const std::vector<std::int32_t>& group,
                                     std::size_t width) {
  std::vector<double> y;
  std::vector<double> count;
  for (std::size_t row = 0; row < group.size(); ++row) {
    if (group[row] < 0) continue;
    const auto s = static_cast<std::size_t>(group[row]);
    if (y.size() < (s + 1) * width) y.resize((s + 1) * width, 0.0);
    if (count.size() < s + 1) count.resize(s + 1, 0.0);
    for (std::size_t i = 0; i < width; ++i) y[s * width + i] += x[row * width + i];
    ++count[s];
  }
  for (std::size_t i = 0; i < y.size(); ++i) y[i] /= count[i / width];
  return y;
}

/// Rows of `width` as vectors of length 1.
inline void divide_by_length(std::vector<double>& y, std::size_t width) {
  for (std::size_t begin = 0; begin < y.size(); begin += width) {
    double squares = 0;
    for (std::size_t i = begin; i < begin + width; ++i) squares += y[i] * y[i];
    for (std::size_t i = begin; i < begin + width; ++i) y[i] /= std::max(std::sqrt(squares), 1e-12);
  }
}

}  // namespace plenum::reference

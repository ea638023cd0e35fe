#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plenum::reference {

/// y[i] = x[index[i]], rows of `width`; zeros for the index -1.
inline std::vector<double> gather_rows(const std::vector<double>& x, const std::vector<std::int32_t>& index,
                                       std::size_t width) {
  std::vector<double> y;
  for (const std::int32_t row : index) {
    if (row < 0) {
      y.insert(y.end(), width, 0.0);
      continue;
    }
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(row) * static_cast<std::ptrdiff_t>(width);
    y.insert(y.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  return y;
}

}  // namespace plenum::reference

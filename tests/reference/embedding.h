#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plenum::reference {

/// z = word[id] + position[p] + segment[g].
inline std::vector<double> embedding_sum(const std::vector<std::int32_t>& ids,
                                         const std::vector<std::int32_t>& positions,
                                         const std::vector<std::int32_t>& segments,
                                         const std::vector<double>& word, const std::vector<double>& position,
                                         const std::vector<double>& segment, std::size_t width) {
  std::vector<double> z(ids.size() * width);
  for (std::size_t row = 0; row < ids.size(); ++row) {
    for (std::size_t i = 0; i < width; ++i) {
      z[row * width + i] = word[static_cast<std::size_t>(ids[row]) * width + i] +
                           position[static_cast<std::size_t>(positions[row]) * width + i] +
                           segment[static_cast<std::size_t>(segments[row]) * width + i];
    }
  }
  return z;
}

}  // namespace plenum::reference

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace plenum::batch {

/// The most objectives that a model may have.
inline constexpr std::size_t kMostObjectives = 4;

/// Numbers of labels, one for each objective of a model in the model's order; 0 for those it has not.
using LabelCounts = std::array<std::int64_t, kMostObjectives>;

inline std::int64_t total(const LabelCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

}  // namespace plenum::batch

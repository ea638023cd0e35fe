#include "plenum/packing/histogram.h"

#include <numeric>

namespace plenum::packing {

std::uint64_t LengthHistogram::num_sequences() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::uint64_t LengthHistogram::num_tokens() const {
  std::uint64_t tokens = 0;
  for (std::size_t length = 0; length < counts.size(); ++length) tokens += counts[length] * length;
  return tokens;
}

double LengthHistogram::mean_length() const {
  const std::uint64_t sequences = num_sequences();
  return sequences == 0 ? 0 : static_cast<double>(num_tokens()) / static_cast<double>(sequences);
}

std::int64_t LengthHistogram::longest() const {
  for (std::size_t length = counts.size(); length > 0; --length) {
    if (counts[length - 1] > 0) return static_cast<std::int64_t>(length - 1);
  }
  return 0;
}

}  // namespace plenum::packing

#include "plenum/data/batches/padding.h"

#include <cmath>

namespace plenum::data {
namespace {

/// 1 - mean / padded, the share that is not text.
double share(const packing::LengthHistogram& histogram, double padded_length) {
  const auto sequences = static_cast<double>(histogram.num_sequences());
  if (sequences == 0 || padded_length == 0) return 0;
  return 1 - static_cast<double>(histogram.num_tokens()) / sequences / padded_length;
}

}  // namespace

double padding_to_max_length(const packing::LengthHistogram& histogram, std::int64_t max_length) {
  return share(histogram, static_cast<double>(max_length));
}

double padding_to_longest(const packing::LengthHistogram& histogram, int batch_size) {
  const auto total = static_cast<double>(histogram.num_sequences());
  double expected_longest = 0;
  double up_to_here = 0;
  double probability_before = 0;
  for (std::size_t length = 0; length < histogram.counts.size(); ++length) {
    up_to_here += static_cast<double>(histogram.counts[length]);
    const double probability = total == 0 ? 0 : std::pow(up_to_here / total, batch_size);
    expected_longest += static_cast<double>(length) * (probability - probability_before);
    probability_before = probability;
  }
  return share(histogram, expected_longest);
}

}  // namespace plenum::data

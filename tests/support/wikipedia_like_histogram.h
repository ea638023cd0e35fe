#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "plenum/base/check.h"
#include "plenum/packing/histogram.h"

namespace plenum::test {

struct LengthQuantile {
  double length = 0;  ///< over the greatest
  double share = 0;   ///< of the sequences that are at most as long, but for those of the greatest length
};

inline constexpr double kPublishedLength = 512;
inline constexpr LengthQuantile kWikipedia[] = {
    {5 / kPublishedLength, 0},      {36 / kPublishedLength, 0.05},  {84 / kPublishedLength, 0.25},
    {128 / kPublishedLength, .369}, {204 / kPublishedLength, 0.5},  {256 / kPublishedLength, .566},
    {384 / kPublishedLength, .683}, {484 / kPublishedLength, 0.75}, {1, 1 - 0.234}};

/// The share of sequences that are at most `length` (over the greatest, below 1) long.
inline double share_up_to(double length) {
  if (length <= kWikipedia[0].length) return 0;
  const LengthQuantile* above =
      std::find_if(std::begin(kWikipedia), std::end(kWikipedia) - 1,
                   [&](const LengthQuantile& point) { return point.length >= length; });
  const LengthQuantile* below = above - 1;
  return below->share +
         (above->share - below->share) * (length - below->length) / (above->length - below->length);
}

/// Lengths distributed as BERT's pre-training sequences from Wikipedia are (Krell et al., arXiv 2107.02027:
/// mean 255.8 of 512, 23.4 % exactly 512), for benchmarks without the real histogram. The inverse of the
/// distribution is linear between its published quantiles (which gives a mean of 257.2), scaled from 512 to
/// `max_length`, which is at least 16. Exactly `num_sequences` sequences of 3 tokens and more.
inline packing::LengthHistogram wikipedia_like_histogram(std::int64_t max_length,
                                                         std::uint64_t num_sequences) {
  constexpr std::int64_t kShortest = 3;
  base::check(max_length >= 16, "the greatest length must be at least 16: {}", max_length);
  packing::LengthHistogram histogram;
  histogram.counts.assign(static_cast<std::size_t>(max_length) + 1, 0);
  std::uint64_t num_shorter = 0;
  for (std::int64_t length = kShortest; length <= max_length; ++length) {
    const double share =
        length == max_length ? 1 : share_up_to(static_cast<double>(length) / static_cast<double>(max_length));
    // Rounding the running sum, not the counts, makes them add up.
    const auto up_to_here =
        static_cast<std::uint64_t>(std::llround(share * static_cast<double>(num_sequences)));
    histogram.counts[static_cast<std::size_t>(length)] = up_to_here - num_shorter;
    num_shorter = up_to_here;
  }
  return histogram;
}

}  // namespace plenum::test

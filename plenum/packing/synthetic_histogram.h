#pragma once

#include <cstdint>

#include "plenum/packing/histogram.h"

namespace plenum::packing {

/// Lengths distributed as BERT's pre-training sequences from Wikipedia are (Krell et al., arXiv 2107.02027:
/// mean 255.8 of 512, 23.4 % exactly 512), for benchmarks without the real histogram. The inverse of the
/// distribution is linear between its published quantiles, scaled from 512 to `max_length`, which is at least
/// 16. Exactly `num_sequences` sequences of 3 tokens and more.
LengthHistogram wikipedia_like_histogram(std::int64_t max_length, std::uint64_t num_sequences);

}  // namespace plenum::packing

#pragma once

#include <cstdint>

#include "plenum/packing/histogram.h"

namespace plenum::data {

/// The share of a batch's tokens that would be padding if every sequence were padded to `max_length`.
double padding_to_max_length(const packing::LengthHistogram& histogram, std::int64_t max_length);

/// The same if each batch of `batch_size` sequences, drawn at random, were padded to its longest. Exact in
/// expectation: the longest of n draws is at most l with probability F(l)^n.
double padding_to_longest(const packing::LengthHistogram& histogram, int batch_size);

}  // namespace plenum::data

#pragma once

#include <cstdint>
#include <vector>

#include "plenum/packing/histogram.h"

namespace plenum::packing {

/// How sequences are numbered: in order of increasing length, so that those of length n are the range
/// [first(n), first(n) + count(n)) and the histogram alone gives the length of any id.
class SequenceIds {
 public:
  explicit SequenceIds(const LengthHistogram& histogram);

  std::uint64_t num_sequences() const { return first_.back(); }
  /// The least id of length n, 0 <= n <= longest length.
  std::uint64_t first(std::int64_t length) const { return first_[static_cast<std::size_t>(length)]; }
  std::uint64_t count(std::int64_t length) const { return first(length + 1) - first(length); }
  /// id < num_sequences().
  std::int64_t length_of(std::uint64_t id) const;

 private:
  std::vector<std::uint64_t> first_;  ///< by length; the last is the number of sequences
};

}  // namespace plenum::packing

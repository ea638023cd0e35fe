#pragma once

#include <cstdint>
#include <vector>

namespace plenum::packing {

/// How many sequences there are of each length. counts[n] is the number of sequences of length n; counts[0]
/// is 0.
struct LengthHistogram {
  std::vector<std::uint64_t> counts;

  std::uint64_t num_sequences() const;
  std::uint64_t num_tokens() const;
  /// The greatest length that occurs; 0 if there is none.
  std::int64_t longest() const;
  /// 0 if there is no sequence.
  double mean_length() const;
};

}  // namespace plenum::packing

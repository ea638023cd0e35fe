#pragma once

#include <cstdint>

namespace plenum::data {

/// Where the tokens of one training sequence lie in the token file: [CLS] A [SEP], or [CLS] A [SEP] B [SEP]
/// for a pair. As it stands in a .sequences file, little-endian.
struct SequenceRecord {
  std::uint64_t first_a = 0;
  std::uint32_t length_a = 0;
  std::uint32_t length_b = 0;  ///< 0 without a pair
  std::uint64_t first_b = 0;
  std::uint32_t flags = 0;
  std::uint32_t reserved = 0;

  static constexpr std::uint32_t kRandomNext = 1;  ///< B does not follow A but comes from another document

  bool is_pair() const { return length_b > 0; }
  bool is_random_next() const { return (flags & kRandomNext) != 0; }
  /// With the special tokens.
  std::uint64_t length() const { return std::uint64_t{length_a} + length_b + (is_pair() ? 3 : 2); }

  bool operator==(const SequenceRecord&) const = default;
};

static_assert(sizeof(SequenceRecord) == 32);

}  // namespace plenum::data

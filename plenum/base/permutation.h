#pragma once

#include <array>
#include <cstdint>

#include "plenum/base/philox.h"

namespace plenum::base {

/// A keyed bijection of [0, size): a shuffle in which any element is computed at once, without a
/// table. A Feistel network over two mixed-radix halves with modular addition; the few values
/// outside [0, size) are walked along their cycle until they fall inside.
class KeyedPermutation {
 public:
  /// The permutation of [0, size) that `random` names at `sample` (for instance one per length). size at most
  /// 2^62.
  KeyedPermutation(const RandomFunction& random, std::uint64_t sample, std::uint64_t size);

  std::uint64_t size() const { return size_; }

  /// Where `index` goes. index < size().
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  static constexpr int kRounds = 8;

  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t size_;
  std::uint64_t left_radix_;
  std::uint64_t right_radix_;
  std::array<std::uint64_t, kRounds> round_keys_;
};

}  // namespace plenum::base

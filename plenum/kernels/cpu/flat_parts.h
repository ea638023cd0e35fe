#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "plenum/kernels/cpu/vector.h"

// How ops of the optimizer divide flat buffers among threads, and sum over them.

namespace plenum::kernels::cpu {

inline constexpr std::int64_t kFlatStep = static_cast<std::int64_t>(kLanes);
/// Elements that a thread takes at a time: four buffers of them take half a megabyte.
inline constexpr std::int64_t kFlatBlock = 1 << 15;
/// Sums are taken in at most this many parts, which find room on the stack.
inline constexpr std::int64_t kMostFlatParts = 256;

/// A cut of elements into equal parts, by their number alone.
struct FlatParts {
  explicit FlatParts(std::int64_t count)
      : size(std::max(kFlatBlock,
                      (count + kMostFlatParts * kFlatStep - 1) / (kMostFlatParts * kFlatStep) * kFlatStep)),
        num_parts(static_cast<std::size_t>((count + size - 1) / size)) {}

  std::int64_t size;
  std::size_t num_parts;
};

using Doubles [[gnu::vector_size(64)]] = double;

/// A sum of squares in double precision: sixteen sums side by side.
class SquareSum {
 public:
  void add(Vec values) {
    const auto low = __builtin_shufflevector(values, values, 0, 1, 2, 3, 4, 5, 6, 7);
    const auto high = __builtin_shufflevector(values, values, 8, 9, 10, 11, 12, 13, 14, 15);
    add(low_, __builtin_convertvector(low, Doubles));
    add(high_, __builtin_convertvector(high, Doubles));
  }

  double total() const {
    const Doubles both = low_ + high_;
    double sum = 0;
    for (std::size_t i = 0; i < kLanes / 2; ++i) sum += both[i];
    return sum;
  }

 private:
  static void add(Doubles& sum, Doubles values) { sum += values * values; }

  Doubles low_ = {};
  Doubles high_ = {};
};

}  // namespace plenum::kernels::cpu

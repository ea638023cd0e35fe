#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "plenum/tensor/sequence_offsets.h"
#include "plenum/tensor/stream.h"

namespace plenum::kernels::cpu {

/// Cuts attention into tasks by shape alone: a part of a head of a sequence. Long sequences come first, so
/// that threads end together. The order is found without memory for it: sequences are counted by length in
/// classes of 64 rows, and a task looks for its sequence among those of its class.
class AttentionTasks {
 public:
  struct Task {
    std::size_t sequence = 0;
    std::int64_t head = 0;
    std::int64_t part = 0;
  };

  /// How many parts the heads of a sequence of some length have.
  using PartsOf = std::int64_t (*)(std::int64_t length);

  AttentionTasks(const tensor::SequenceOffsets& sequences, std::int64_t num_heads, PartsOf parts_of)
      : sequences_(sequences), num_heads_(num_heads), parts_of_(parts_of) {
    for (const std::int32_t length : sequences.lengths) {
      counts_[class_of(length)] += num_heads * parts_of(length);
    }
  }

  std::size_t size() const {
    std::int64_t total = 0;
    for (const std::int64_t count : counts_) total += count;
    return static_cast<std::size_t>(total);
  }

  Task operator[](std::size_t index) const {
    auto left = static_cast<std::int64_t>(index);
    std::size_t length_class = kClasses - 1;
    for (; left >= counts_[length_class]; --length_class) left -= counts_[length_class];
    for (std::size_t s = 0;; ++s) {
      if (class_of(sequences_.lengths[s]) != length_class) continue;
      const std::int64_t parts = parts_of_(sequences_.lengths[s]);
      if (left < num_heads_ * parts) return {.sequence = s, .head = left / parts, .part = left % parts};
      left -= num_heads_ * parts;
    }
  }

 private:
  static constexpr std::size_t kClasses = 33;
  static std::size_t class_of(std::int32_t length) {
    return std::min(static_cast<std::size_t>(length) / 64, kClasses - 1);
  }

  const tensor::SequenceOffsets& sequences_;
  std::int64_t num_heads_;
  PartsOf parts_of_;
  std::array<std::int64_t, kClasses> counts_{};
};

/// Calls body(first, end) for the rows before each sequence and behind the last: padding.
template <typename Body>
void for_each_gap(const tensor::Stream& stream, const tensor::SequenceOffsets& sequences, Body body) {
  const std::size_t count = sequences.num_sequences();
  stream.pool().run(count + 1, [&](std::size_t i, std::size_t) {
    const std::int64_t first = i == 0 ? 0 : std::int64_t{sequences.starts[i - 1]} + sequences.lengths[i - 1];
    const std::int64_t end = i == count ? sequences.num_rows : sequences.starts[i];
    if (first < end) body(first, end);
  });
}

}  // namespace plenum::kernels::cpu

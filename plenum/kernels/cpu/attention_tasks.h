#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "plenum/batch/sequence_offsets.h"
#include "plenum/tensor/stream.h"

namespace plenum::kernels::cpu {

/// Cuts attention into tasks by shape alone: a part of a head of a sequence. Long sequences come first, so
/// that threads end together. The order is found without memory that grows with the sequences: they are cut
/// into a fixed number of runs, tasks are counted by run and by length in classes of 64 rows, and a task
/// looks for its sequence only among those of its run.
class AttentionTasks {
 public:
  struct Task {
    std::size_t sequence = 0;
    std::int64_t head = 0;
    std::int64_t part = 0;
  };

  /// How many parts the heads of a sequence of some length have.
  using PartsOf = std::int64_t (*)(std::int64_t length);

  AttentionTasks(const batch::SequenceOffsets& sequences, std::int64_t num_heads, PartsOf parts_of)
      : sequences_(sequences),
        num_heads_(num_heads),
        parts_of_(parts_of),
        run_length_((sequences.num_sequences() + kRuns - 1) / kRuns) {
    for (std::size_t s = 0; s < sequences.num_sequences(); ++s) {
      const std::size_t length_class = class_of(sequences.lengths[s]);
      const std::int64_t count = num_heads * parts_of(sequences.lengths[s]);
      counts_[length_class][s / run_length_] += count;
      class_counts_[length_class] += count;
    }
  }

  std::size_t size() const {
    std::int64_t total = 0;
    for (const std::int64_t count : class_counts_) total += count;
    return static_cast<std::size_t>(total);
  }

  Task operator[](std::size_t index) const {
    auto left = static_cast<std::int64_t>(index);
    std::size_t length_class = kClasses - 1;
    for (; left >= class_counts_[length_class]; --length_class) left -= class_counts_[length_class];
    std::size_t run = 0;
    for (; left >= counts_[length_class][run]; ++run) left -= counts_[length_class][run];
    for (std::size_t s = run * run_length_;; ++s) {
      if (class_of(sequences_.lengths[s]) != length_class) continue;
      const std::int64_t parts = parts_of_(sequences_.lengths[s]);
      if (left < num_heads_ * parts) return {.sequence = s, .head = left / parts, .part = left % parts};
      left -= num_heads_ * parts;
    }
  }

 private:
  static constexpr std::size_t kClasses = 33;
  static constexpr std::size_t kRuns = 64;
  static std::size_t class_of(std::int32_t length) {
    return std::min(static_cast<std::size_t>(length) / 64, kClasses - 1);
  }

  const batch::SequenceOffsets& sequences_;
  std::int64_t num_heads_;
  PartsOf parts_of_;
  std::size_t run_length_;  ///< sequences of each run but the last
  std::array<std::array<std::int64_t, kRuns>, kClasses> counts_{};
  std::array<std::int64_t, kClasses> class_counts_{};
};

/// Calls body(first, end) for the rows before each sequence and behind the last: padding.
template <typename Body>
void for_each_gap(const tensor::Stream& stream, const batch::SequenceOffsets& sequences, Body body) {
  const std::size_t count = sequences.num_sequences();
  stream.pool().run(count + 1, [&](std::size_t i, std::size_t) {
    const std::int64_t first = i == 0 ? 0 : std::int64_t{sequences.starts[i - 1]} + sequences.lengths[i - 1];
    const std::int64_t end = i == count ? sequences.num_rows : sequences.starts[i];
    if (first < end) body(first, end);
  });
}

}  // namespace plenum::kernels::cpu

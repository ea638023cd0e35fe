#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plenum/describe/task.h"

namespace plenum::data {

/// What the sequences of a source are labelled with where a model is fine-tuned on them: it takes the place
/// of masks and next-sentence labels. The source's ids are then those of *examples*, each laid out as one
/// sequence, or for multiple choice as one for each choice, which stay together: length(id) is of all of
/// them, and append() gives them end to end. Any number of threads may read one.
class TaskLabels {
 public:
  virtual ~TaskLabels() = default;

  virtual const describe::Task& task() const = 0;
  /// The choices of multiple choice, else 1.
  virtual std::int64_t sequences_per_example() const = 0;
  /// As many, which make length(id) together. Stays where it is as long as the source.
  virtual std::span<const std::int32_t> sequence_lengths(std::uint64_t id) const = 0;
  /// The longest there is, of one sequence.
  virtual std::int64_t longest_sequence() const = 0;

  /// Rows of an example that have a label.
  virtual std::int64_t num_labels(std::uint64_t id) const = 0;
  /// The most that an example of at most `length` tokens has: never falls as the length grows.
  virtual std::int64_t most_labels(std::int64_t length) const = 0;
  /// Appends where in the example's tokens its labels stand, increasing, and the labels, as the objective of
  /// the task reads them (describe/objective.h): a class, the bits of a float, or a GroupLabel. Where nothing
  /// is known of an example they are valid, and mean nothing.
  virtual void append_labels(std::uint64_t id, std::vector<std::int32_t>& positions,
                             std::vector<std::int32_t>& labels) const = 0;
};

}  // namespace plenum::data

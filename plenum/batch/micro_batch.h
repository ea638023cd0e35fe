#pragma once

#include <cstdint>
#include <vector>

#include "plenum/batch/sequence_offsets.h"
#include "plenum/batch/work.h"

namespace plenum::batch {

/// Rows of a micro-batch grouped by the table entry they read (kernels::RowGroups), owned.
struct GroupedRows {
  std::vector<std::int32_t> entries;
  std::vector<std::int32_t> starts;  ///< one more than entries
  std::vector<std::int32_t> rows;
};

/// What an objective reads of a micro-batch and is to predict there.
struct ObjectiveRows {
  std::vector<std::int32_t> rows;    ///< increasing
  std::vector<std::int32_t> labels;  ///< of each
};

/// The sequences that one forward works on, laid end to end, with what is to be predicted. A micro-batch
/// without sequences is allowed: nothing is done for it.
struct MicroBatch {
  std::int64_t num_rows = 0;  ///< padding included
  // Of each row. Padding has the id and the segment 0 and the position 0.
  std::vector<std::int32_t> ids;  ///< after masking
  std::vector<std::int32_t> segments;
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> row_samples;  ///< the sequence's id in the dataset
  // Of each sequence, in order of their rows.
  std::vector<std::int32_t> starts;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> samples;
  // By the model's objectives; there may be fewer, if nothing is known for the last of them, and more, which
  // are not read.
  std::vector<ObjectiveRows> objectives;
  // For the gradients of the embedding tables; entries increase, and so do the rows of each. Empty where the
  // micro-batch is for evaluation.
  GroupedRows by_word;
  GroupedRows by_position;
  GroupedRows by_segment;

  SequenceOffsets sequences() const { return {starts, lengths, num_rows}; }
  /// Nothing where there is none for the objective.
  const ObjectiveRows& objective(std::size_t index) const;
  Work work() const;  ///< padding left out
};

}  // namespace plenum::batch

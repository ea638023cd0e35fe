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
  std::vector<std::int32_t>
      next_sentence_labels;  ///< 0: B follows A, 1: B is random; empty without the objective
  // Of each masked token.
  std::vector<std::int32_t> masked_rows;  ///< increasing
  std::vector<std::int32_t> masked_labels;
  // For the gradients of the embedding tables; entries increase, and so do the rows of each. Empty where the
  // micro-batch is for evaluation.
  GroupedRows by_word;
  GroupedRows by_position;
  GroupedRows by_segment;

  SequenceOffsets sequences() const { return {starts, lengths, num_rows}; }
  Work work() const;  ///< padding left out
};

}  // namespace plenum::batch

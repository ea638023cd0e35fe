#pragma once

#include "plenum/kernels/attention.h"
#include "plenum/kernels/embedding.h"
#include "plenum/model/micro_batch.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::model {

/// A micro-batch as kernels read it: views of memory of the device that they run on. Numbers of rows, masked
/// tokens and sequences may be rounded up there, so that few shapes occur: what was added stands for nothing
/// (rows of no sequence, rows and labels -1). T rows, M masked tokens, S sequences.
struct MicroBatchViews {
  tensor::ConstTensorView id_T, segment_T, position_T;
  tensor::ConstTensorView row_sample_T;
  tensor::ConstTensorView start_S, next_sentence_label_S;  ///< labels only with the objective
  tensor::ConstTensorView masked_row_M, masked_label_M;
  kernels::RowIdentities read_rows;  ///< of masked tokens and, with labels, of the sequences' first rows
  kernels::RowGroups by_word, by_position, by_segment;
  kernels::AttentionWork attention;
  tensor::SequenceOffsets sequences;      ///< in the host's memory
  std::span<const std::int64_t> samples;  ///< the same

  std::int64_t num_rows() const { return id_T.num_elements(); }
  std::int64_t num_masked() const { return masked_row_M.num_elements(); }
  std::int64_t num_sequences() const { return start_S.num_elements(); }
};

/// Which tokens heads read (plenum/model/read_rows.h), owned.
struct ReadRows {
  std::vector<std::int64_t> samples;
  std::vector<std::int32_t> positions;
};

/// With room for so many masked tokens and labels as counted there, what is added standing for nothing.
ReadRows read_rows_of(const MicroBatch& micro_batch, std::int64_t num_masked, std::int64_t num_labels);

/// Of what lies in the host's memory, exactly as it is. Borrows.
MicroBatchViews views_of(const MicroBatch& micro_batch, const ReadRows& read_rows);

}  // namespace plenum::model

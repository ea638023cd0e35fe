#pragma once

#include "plenum/batch/micro_batch.h"
#include "plenum/kernels/attention.h"
#include "plenum/kernels/embedding.h"
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
  /// Of masked tokens and, with labels, of the sequences' first rows; of what was added anything.
  kernels::RowIdentities read_rows;
  kernels::RowGroups by_word, by_position, by_segment;
  kernels::AttentionWork attention;
  batch::SequenceOffsets sequences;       ///< in the host's memory
  std::span<const std::int64_t> samples;  ///< the same

  std::int64_t num_rows() const { return id_T.num_elements(); }
  std::int64_t num_masked() const { return masked_row_M.num_elements(); }
  std::int64_t num_sequences() const { return start_S.num_elements(); }
};

}  // namespace plenum::model

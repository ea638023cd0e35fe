#pragma once

#include <array>

#include "plenum/batch/micro_batch.h"
#include "plenum/kernels/attention.h"
#include "plenum/kernels/embedding.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::model {

/// The rows that an objective reads, and its labels.
struct ObjectiveViews {
  tensor::ConstTensorView row_M, label_M;

  std::int64_t num_labels() const { return row_M.shape().num_dims() == 0 ? 0 : row_M.num_elements(); }
};

/// A micro-batch as kernels read it: views of memory of the device that they run on. Numbers of rows, labels
/// and sequences may be rounded up there, so that few shapes occur: what was added stands for nothing (rows
/// of no sequence, rows and labels -1). T rows, M labels of an objective, S sequences.
struct MicroBatchViews {
  tensor::ConstTensorView id_T, segment_T, position_T;
  tensor::ConstTensorView row_sample_T;
  std::array<ObjectiveViews, batch::kMostObjectives> objectives;  ///< the model's
  /// Of the rows that objectives read, one objective after the other; of what was added anything.
  kernels::RowIdentities read_rows;
  kernels::RowGroups by_word, by_position, by_segment;
  kernels::AttentionWork attention;
  batch::SequenceOffsets sequences;       ///< in the host's memory
  std::span<const std::int64_t> samples;  ///< the same

  std::int64_t num_rows() const { return id_T.num_elements(); }
  batch::LabelCounts num_labels() const {
    batch::LabelCounts counts{};
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = objectives[i].num_labels();
    return counts;
  }
};

}  // namespace plenum::model

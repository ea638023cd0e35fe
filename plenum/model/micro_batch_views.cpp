#include "plenum/model/micro_batch_views.h"

namespace plenum::model {
namespace {

template <typename Element>
tensor::ConstTensorView view_of(const std::vector<Element>& elements) {
  return {elements.data(), {static_cast<std::int64_t>(elements.size())}};
}

kernels::RowGroups groups_of(const GroupedRows& grouped) {
  return {.entry_G = view_of(grouped.entries),
          .start_G = view_of(grouped.starts),
          .row_R = view_of(grouped.rows)};
}

}  // namespace

MicroBatchViews views_of(const MicroBatch& micro_batch) {
  return {.id_T = view_of(micro_batch.ids),
          .segment_T = view_of(micro_batch.segments),
          .position_T = view_of(micro_batch.positions),
          .row_sample_T = view_of(micro_batch.row_samples),
          .start_S = view_of(micro_batch.starts),
          .next_sentence_label_S = view_of(micro_batch.next_sentence_labels),
          .masked_row_M = view_of(micro_batch.masked_rows),
          .masked_label_M = view_of(micro_batch.masked_labels),
          .by_word = groups_of(micro_batch.by_word),
          .by_position = groups_of(micro_batch.by_position),
          .by_segment = groups_of(micro_batch.by_segment),
          .attention = {},
          .sequences = micro_batch.sequences(),
          .samples = micro_batch.samples};
}

}  // namespace plenum::model

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

ReadRows read_rows_of(const MicroBatch& micro_batch, std::int64_t num_masked, std::int64_t num_labels) {
  const auto num_read = static_cast<std::size_t>(num_masked + num_labels);
  ReadRows read{.samples = std::vector<std::int64_t>(num_read),
                .positions = std::vector<std::int32_t>(num_read)};
  const auto put = [&](std::size_t place, std::int32_t row) {
    base::check(row >= 0 && row < micro_batch.num_rows && place < num_read,
                "a row that a head reads is outside: row={} of {}", row, micro_batch.num_rows);
    read.samples[place] = micro_batch.row_samples[static_cast<std::size_t>(row)];
    read.positions[place] = micro_batch.positions[static_cast<std::size_t>(row)];
  };
  std::size_t place = 0;
  for (const std::int32_t row : micro_batch.masked_rows) put(place++, row);
  if (num_labels == 0) return read;
  place = static_cast<std::size_t>(num_masked);
  for (const std::int32_t row : micro_batch.starts) put(place++, row);
  return read;
}

MicroBatchViews views_of(const MicroBatch& micro_batch, const ReadRows& read_rows) {
  return {.id_T = view_of(micro_batch.ids),
          .segment_T = view_of(micro_batch.segments),
          .position_T = view_of(micro_batch.positions),
          .row_sample_T = view_of(micro_batch.row_samples),
          .start_S = view_of(micro_batch.starts),
          .next_sentence_label_S = view_of(micro_batch.next_sentence_labels),
          .masked_row_M = view_of(micro_batch.masked_rows),
          .masked_label_M = view_of(micro_batch.masked_labels),
          .read_rows = {.sample_T = view_of(read_rows.samples), .position_T = view_of(read_rows.positions)},
          .by_word = groups_of(micro_batch.by_word),
          .by_position = groups_of(micro_batch.by_position),
          .by_segment = groups_of(micro_batch.by_segment),
          .attention = {},
          .sequences = micro_batch.sequences(),
          .samples = micro_batch.samples};
}

}  // namespace plenum::model

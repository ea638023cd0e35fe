#include "plenum/model/micro_batch_staging.h"

#include <algorithm>
#include <array>

#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/kernels/attention_work.h"
#include "plenum/model/check_micro_batch.h"
#include "plenum/tensor/cuda_memory.h"

namespace plenum::model {
namespace {

using tensor::ConstTensorView;
using tensor::DType;

std::int64_t count_of(const auto& values) {
  return static_cast<std::int64_t>(values.size());
}

template <typename Element>
ConstTensorView view_of(const std::vector<Element>& elements) {
  return {elements.data(), {count_of(elements)}};
}

kernels::RowGroups groups_of(const batch::GroupedRows& grouped) {
  return {.entry_G = view_of(grouped.entries),
          .start_G = view_of(grouped.starts),
          .row_R = view_of(grouped.rows)};
}

/// What every row has of `of_row`, for the rows that heads read, objective by objective; zeros up to each
/// one's number of labels.
template <typename Element>
std::vector<Element> of_read_rows(const batch::MicroBatch& micro_batch, const std::vector<Element>& of_row,
                                  std::span<const std::int64_t> num_labels) {
  std::vector<Element> read;
  std::int64_t end = 0;
  for (std::size_t i = 0; i < num_labels.size(); ++i) {
    for (const std::int32_t row : micro_batch.objective(i).rows)
      read.push_back(of_row[static_cast<std::size_t>(row)]);
    end += num_labels[i];
    read.resize(static_cast<std::size_t>(end));
  }
  return read;
}

}  // namespace

MicroBatchStaging::MicroBatchStaging(const describe::ModelDescription& model, const batch::Capacity& capacity,
                                     const tensor::TensorView& room)
    : model_(&model), layout_(model, capacity), room_(room) {
  if (room_) pinned_ = std::make_unique<tensor::PinnedMemory>(layout_.num_bytes);
}

/// The values, and `rest` from there to `count`.
template <typename Element>
ConstTensorView MicroBatchStaging::write(const Field& field, std::span<const Element> values,
                                         std::int64_t count, Element rest) {
  base::check(static_cast<std::int64_t>(values.size()) <= count && count <= field.capacity,
              "a micro-batch is larger than its room: {} values, {} of {}", values.size(), count,
              field.capacity);
  auto* const elements = reinterpret_cast<Element*>(pinned_->data() + field.offset);
  const auto end = std::ranges::copy(values, elements).out;
  std::fill(end, elements + count, rest);
  return {static_cast<const std::byte*>(room_.raw()) + field.offset, field.dtype, {count}};
}

kernels::RowGroups MicroBatchStaging::write(const GroupFields& fields, const batch::GroupedRows& grouped,
                                            std::int64_t num_rows) {
  if (grouped.entries.empty()) return {};
  // Entries that are not there have no rows: they begin where all end.
  const std::span<const std::int32_t> rows = grouped.rows;
  return {.entry_G = write<std::int32_t>(fields.entry, grouped.entries, fields.entry.capacity, -1),
          .start_G = write<std::int32_t>(fields.start, grouped.starts, fields.start.capacity,
                                         static_cast<std::int32_t>(rows.size())),
          .row_R = write<std::int32_t>(fields.row, rows, num_rows, 0)};
}

const MicroBatchViews& MicroBatchStaging::put(const batch::MicroBatch& micro_batch,
                                              const tensor::CudaStream* copies) {
  check_micro_batch(micro_batch, *model_);
  if (copies == nullptr || micro_batch.num_rows == 0) {
    views_ = borrow(micro_batch);
  } else {
    views_ = write(micro_batch);
    tensor::copy_cuda(*copies, pinned_->data(), room_.raw(), layout_.num_bytes);
  }
  return views_;
}

MicroBatchViews MicroBatchStaging::borrow(const batch::MicroBatch& micro_batch) {
  MicroBatchViews views{.id_T = view_of(micro_batch.ids),
                        .segment_T = view_of(micro_batch.segments),
                        .position_T = view_of(micro_batch.positions),
                        .row_sample_T = view_of(micro_batch.row_samples),
                        .objectives = {},
                        .read_rows = {},
                        .by_word = groups_of(micro_batch.by_word),
                        .by_position = groups_of(micro_batch.by_position),
                        .by_segment = groups_of(micro_batch.by_segment),
                        .attention = {},
                        .sequences = micro_batch.sequences(),
                        .samples = micro_batch.samples};
  batch::LabelCounts counts{};
  const std::span<std::int64_t> num_labels = std::span(counts).first(model_->num_row_lists());
  for (std::size_t i = 0; i < num_labels.size(); ++i) {
    const batch::ObjectiveRows& objective = micro_batch.objective(i);
    views.objectives[i] = {.row_M = view_of(objective.rows), .label_M = view_of(objective.labels)};
    num_labels[i] = count_of(objective.rows);
  }
  read_samples_ = of_read_rows(micro_batch, micro_batch.row_samples, num_labels);
  read_positions_ = of_read_rows(micro_batch, micro_batch.positions, num_labels);
  views.read_rows = {.sample_T = view_of(read_samples_), .position_T = view_of(read_positions_)};
  return views;
}

MicroBatchViews MicroBatchStaging::write(const batch::MicroBatch& micro_batch) {
  constexpr tensor::Device kGpu = tensor::Device::Cuda;
  const std::int64_t T = memory::computed_rows(micro_batch.num_rows, kGpu);
  const std::int64_t S = memory::computed_sequences(count_of(micro_batch.starts), kGpu);
  batch::SequenceOffsets sequences = micro_batch.sequences();
  sequences.num_rows = T;
  const kernels::AttentionWorkList work = kernels::attention_work_list(sequences);
  const std::array<std::int32_t, 2> work_counts = {static_cast<std::int32_t>(work.tiles_N4.size() / 4),
                                                   static_cast<std::int32_t>(work.gaps_G2.size() / 2)};
  const auto write_all = [&]<typename Element>(const Field& field, const std::vector<Element>& values) {
    return write<Element>(field, values, field.capacity, 0);
  };
  MicroBatchViews views{
      .id_T = write<std::int32_t>(layout_.id, micro_batch.ids, T, 0),
      .segment_T = write<std::int32_t>(layout_.segment, micro_batch.segments, T, 0),
      .position_T = write<std::int32_t>(layout_.position, micro_batch.positions, T, 0),
      .row_sample_T = write<std::int64_t>(layout_.row_sample, micro_batch.row_samples, T, 0),
      .objectives = {},
      .read_rows = {},
      .by_word = write(layout_.by_word, micro_batch.by_word, T),
      .by_position = write(layout_.by_position, micro_batch.by_position, T),
      .by_segment = write(layout_.by_segment, micro_batch.by_segment, T),
      .attention = {.counts_2 = write<std::int32_t>(layout_.work_counts, work_counts, 2, 0),
                    .tiles_N4 = write_all(layout_.tiles, work.tiles_N4),
                    .gaps_G2 = write_all(layout_.gaps, work.gaps_G2),
                    .sample_S = write<std::int64_t>(layout_.sample, micro_batch.samples, S, 0)},
      .sequences = sequences,
      .samples = micro_batch.samples};
  write_objectives(micro_batch, views);
  const auto by = [](const ConstTensorView& list, std::int64_t columns) {
    return ConstTensorView(list.raw(), list.dtype(), {list.num_elements() / columns, columns});
  };
  views.attention.tiles_N4 = by(views.attention.tiles_N4, 4);
  views.attention.gaps_G2 = by(views.attention.gaps_G2, 2);
  return views;
}

void MicroBatchStaging::write_objectives(const batch::MicroBatch& micro_batch, MicroBatchViews& views) {
  batch::LabelCounts counts{};
  const std::span<std::int64_t> num_labels = std::span(counts).first(model_->num_row_lists());
  for (std::size_t i = 0; i < num_labels.size(); ++i) {
    const batch::ObjectiveRows& objective = micro_batch.objective(i);
    num_labels[i] = memory::computed_labels(count_of(objective.rows), tensor::Device::Cuda);
    views.objectives[i] = {
        .row_M = write<std::int32_t>(layout_.labelled_row[i], objective.rows, num_labels[i], -1),
        .label_M = write<std::int32_t>(layout_.label[i], objective.labels, num_labels[i], -1)};
  }
  const std::vector<std::int64_t> samples = of_read_rows(micro_batch, micro_batch.row_samples, num_labels);
  const std::vector<std::int32_t> positions = of_read_rows(micro_batch, micro_batch.positions, num_labels);
  const std::int64_t num_read = batch::total(counts);
  views.read_rows = {.sample_T = write<std::int64_t>(layout_.read_sample, samples, num_read, 0),
                     .position_T = write<std::int32_t>(layout_.read_position, positions, num_read, 0)};
}

}  // namespace plenum::model

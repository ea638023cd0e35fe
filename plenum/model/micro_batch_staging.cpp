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

// What counts are rounded up to: large enough that few shapes occur, small enough that little is added.
constexpr std::int64_t kRowStep = 256;
constexpr std::int64_t kMaskedStep = 128;
constexpr std::int64_t kSequenceStep = 128;

std::int64_t rounded_up(std::int64_t count, std::int64_t step) {
  return (count + step - 1) / step * step;
}

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

/// What every row has of `of_row`, for the rows that heads read: masked tokens', zeros up to `num_masked`,
/// and with labels the sequences' first ones.
template <typename Element>
std::vector<Element> of_read_rows(const batch::MicroBatch& micro_batch, const std::vector<Element>& of_row,
                                  std::int64_t num_masked) {
  std::vector<Element> read;
  const auto append = [&](const std::vector<std::int32_t>& rows) {
    for (const std::int32_t row : rows) read.push_back(of_row[static_cast<std::size_t>(row)]);
  };
  append(micro_batch.masked_rows);
  read.resize(static_cast<std::size_t>(num_masked));
  if (!micro_batch.next_sentence_labels.empty()) append(micro_batch.starts);
  return read;
}

}  // namespace

std::int64_t computed_rows(std::int64_t num_rows, tensor::Device device) {
  return device == tensor::Device::Cpu ? num_rows : rounded_up(num_rows, kRowStep);
}

batch::Capacity computed_capacity(const batch::Capacity& capacity, tensor::Device device) {
  if (device == tensor::Device::Cpu) return capacity;
  return {.rows = computed_rows(capacity.rows, device),
          .sequences = rounded_up(capacity.sequences, kSequenceStep),
          .masked = rounded_up(capacity.masked, kMaskedStep),
          .max_length = capacity.max_length};
}

MicroBatchStaging::MicroBatchStaging(const describe::ModelDescription& model, const batch::Capacity& capacity,
                                     tensor::MemoryPlan& plan)
    : model_(&model) {
  if (plan.device() == tensor::Device::Cpu) return;
  const std::int64_t T = capacity.rows;
  id_ = add(DType::Int32, T);
  segment_ = add(DType::Int32, T);
  position_ = add(DType::Int32, T);
  row_sample_ = add(DType::Int64, T);
  start_ = add(DType::Int32, capacity.sequences);
  label_ = add(DType::Int32, capacity.sequences);
  sample_ = add(DType::Int64, capacity.sequences);
  masked_row_ = add(DType::Int32, capacity.masked);
  masked_label_ = add(DType::Int32, capacity.masked);
  read_sample_ = add(DType::Int64, capacity.read());
  read_position_ = add(DType::Int32, capacity.read());
  by_word_ = add_groups(std::min(model.vocabulary(), T), T);
  by_position_ = add_groups(std::min(model.embedding.positions->num_rows, T), T);
  by_segment_ = add_groups(std::min(model.embedding.segments->num_rows, T), T);
  const kernels::AttentionWorkCapacity work = kernels::attention_work_capacity(T, capacity.sequences);
  work_counts_ = add(DType::Int32, 2);
  tiles_ = add(DType::Int32, 4 * work.tiles);
  gaps_ = add(DType::Int32, 2 * work.gaps);
  room_ = plan.add("micro-batches", DType::Byte, {static_cast<std::int64_t>(num_bytes_)});
  if (room_) pinned_ = std::make_unique<tensor::PinnedMemory>(num_bytes_);
}

MicroBatchStaging::Field MicroBatchStaging::add(DType dtype, std::int64_t capacity) {
  constexpr std::size_t kAlignment = 256;
  const Field field{.offset = num_bytes_, .dtype = dtype, .capacity = capacity};
  const std::size_t bytes = static_cast<std::size_t>(capacity) * tensor::size_of(dtype);
  num_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return field;
}

MicroBatchStaging::GroupFields MicroBatchStaging::add_groups(std::int64_t num_entries,
                                                             std::int64_t num_rows) {
  return {.entry = add(DType::Int32, num_entries),
          .start = add(DType::Int32, num_entries + 1),
          .row = add(DType::Int32, num_rows)};
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
    tensor::copy_cuda(*copies, pinned_->data(), room_.raw(), num_bytes_);
  }
  return views_;
}

MicroBatchViews MicroBatchStaging::borrow(const batch::MicroBatch& micro_batch) {
  const std::int64_t M = count_of(micro_batch.masked_rows);
  read_samples_ = of_read_rows(micro_batch, micro_batch.row_samples, M);
  read_positions_ = of_read_rows(micro_batch, micro_batch.positions, M);
  return {.id_T = view_of(micro_batch.ids),
          .segment_T = view_of(micro_batch.segments),
          .position_T = view_of(micro_batch.positions),
          .row_sample_T = view_of(micro_batch.row_samples),
          .start_S = view_of(micro_batch.starts),
          .next_sentence_label_S = view_of(micro_batch.next_sentence_labels),
          .masked_row_M = view_of(micro_batch.masked_rows),
          .masked_label_M = view_of(micro_batch.masked_labels),
          .read_rows = {.sample_T = view_of(read_samples_), .position_T = view_of(read_positions_)},
          .by_word = groups_of(micro_batch.by_word),
          .by_position = groups_of(micro_batch.by_position),
          .by_segment = groups_of(micro_batch.by_segment),
          .attention = {},
          .sequences = micro_batch.sequences(),
          .samples = micro_batch.samples};
}

MicroBatchViews MicroBatchStaging::write(const batch::MicroBatch& micro_batch) {
  const std::int64_t T = rounded_up(micro_batch.num_rows, kRowStep);
  const std::int64_t S = rounded_up(count_of(micro_batch.starts), kSequenceStep);
  const std::int64_t M = rounded_up(count_of(micro_batch.masked_rows), kMaskedStep);
  const std::int64_t labels = micro_batch.next_sentence_labels.empty() ? 0 : S;
  const std::vector<std::int64_t> read_samples = of_read_rows(micro_batch, micro_batch.row_samples, M);
  const std::vector<std::int32_t> read_positions = of_read_rows(micro_batch, micro_batch.positions, M);
  batch::SequenceOffsets sequences = micro_batch.sequences();
  sequences.num_rows = T;
  const kernels::AttentionWorkList work = kernels::attention_work_list(sequences);
  const std::array<std::int32_t, 2> work_counts = {static_cast<std::int32_t>(work.tiles_N4.size() / 4),
                                                   static_cast<std::int32_t>(work.gaps_G2.size() / 2)};
  MicroBatchViews views{
      .id_T = write<std::int32_t>(id_, micro_batch.ids, T, 0),
      .segment_T = write<std::int32_t>(segment_, micro_batch.segments, T, 0),
      .position_T = write<std::int32_t>(position_, micro_batch.positions, T, 0),
      .row_sample_T = write<std::int64_t>(row_sample_, micro_batch.row_samples, T, 0),
      .start_S = write<std::int32_t>(start_, micro_batch.starts, S, -1),
      .next_sentence_label_S = write<std::int32_t>(label_, micro_batch.next_sentence_labels, labels, -1),
      .masked_row_M = write<std::int32_t>(masked_row_, micro_batch.masked_rows, M, -1),
      .masked_label_M = write<std::int32_t>(masked_label_, micro_batch.masked_labels, M, -1),
      .read_rows = {.sample_T = write<std::int64_t>(read_sample_, read_samples, M + labels, 0),
                    .position_T = write<std::int32_t>(read_position_, read_positions, M + labels, 0)},
      .by_word = write(by_word_, micro_batch.by_word, T),
      .by_position = write(by_position_, micro_batch.by_position, T),
      .by_segment = write(by_segment_, micro_batch.by_segment, T),
      .attention = {.counts_2 = write<std::int32_t>(work_counts_, work_counts, 2, 0),
                    .tiles_N4 = write<std::int32_t>(tiles_, work.tiles_N4, tiles_.capacity, 0),
                    .gaps_G2 = write<std::int32_t>(gaps_, work.gaps_G2, gaps_.capacity, 0),
                    .sample_S = write<std::int64_t>(sample_, micro_batch.samples, S, 0)},
      .sequences = sequences,
      .samples = micro_batch.samples};
  const auto by = [](const ConstTensorView& list, std::int64_t columns) {
    return ConstTensorView(list.raw(), list.dtype(), {list.num_elements() / columns, columns});
  };
  views.attention.tiles_N4 = by(views.attention.tiles_N4, 4);
  views.attention.gaps_G2 = by(views.attention.gaps_G2, 2);
  return views;
}

}  // namespace plenum::model

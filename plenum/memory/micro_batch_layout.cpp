#include "plenum/memory/micro_batch_layout.h"

#include <algorithm>

#include "plenum/workspace/attention.h"

namespace plenum::memory {
namespace {

using tensor::Device;
using tensor::DType;

// What counts are rounded up to: large enough that few shapes occur, small enough that little is added.
constexpr std::int64_t kRowStep = 256;
constexpr std::int64_t kLabelStep = 128;
constexpr std::int64_t kSequenceStep = 128;

std::int64_t rounded_up(std::int64_t count, std::int64_t step, Device device) {
  return device == Device::Cpu ? count : (count + step - 1) / step * step;
}

}  // namespace

std::int64_t computed_rows(std::int64_t num_rows, Device device) {
  return rounded_up(num_rows, kRowStep, device);
}
std::int64_t computed_labels(std::int64_t num_labels, Device device) {
  return rounded_up(num_labels, kLabelStep, device);
}
std::int64_t computed_sequences(std::int64_t num_sequences, Device device) {
  return rounded_up(num_sequences, kSequenceStep, device);
}

batch::Capacity computed_capacity(const batch::Capacity& capacity, Device device) {
  batch::Capacity computed{.rows = computed_rows(capacity.rows, device),
                           .sequences = computed_sequences(capacity.sequences, device),
                           .max_length = capacity.max_length};
  for (std::size_t i = 0; i < capacity.labels.size(); ++i) {
    computed.labels[i] = computed_labels(capacity.labels[i], device);
  }
  return computed;
}

MicroBatchLayout::MicroBatchLayout(const describe::ModelDescription& model, const batch::Capacity& capacity) {
  const std::int64_t T = capacity.rows;
  const auto pointer_to = [](const auto& table) { return table ? &*table : nullptr; };
  id = add(DType::Int32, T);
  segment = add(DType::Int32, T);
  position = add(DType::Int32, T);
  row_sample = add(DType::Int64, T);
  sample = add(DType::Int64, capacity.sequences);
  for (std::size_t i = 0; i < model.num_row_lists(); ++i) {
    labelled_row[i] = add(DType::Int32, capacity.labels[i]);
    label[i] = add(DType::Int32, capacity.labels[i]);
  }
  read_sample = add(DType::Int64, capacity.read());
  read_position = add(DType::Int32, capacity.read());
  by_word = add_groups(&model.embedding.words, T);
  by_position = add_groups(pointer_to(model.embedding.positions), T);
  by_segment = add_groups(pointer_to(model.embedding.segments), T);
  const workspace::AttentionWorkCapacity work = workspace::attention_work_capacity(T, capacity.sequences);
  work_counts = add(DType::Int32, 2);
  tiles = add(DType::Int32, 4 * work.tiles);
  gaps = add(DType::Int32, 2 * work.gaps);
}

MicroBatchLayout::Field MicroBatchLayout::add(DType dtype, std::int64_t capacity) {
  constexpr std::size_t kAlignment = 256;
  const Field field{.offset = num_bytes, .dtype = dtype, .capacity = capacity};
  const std::size_t bytes = static_cast<std::size_t>(capacity) * tensor::size_of(dtype);
  num_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return field;
}

MicroBatchLayout::GroupFields MicroBatchLayout::add_groups(const describe::Table* table,
                                                           std::int64_t num_rows) {
  if (table == nullptr) return {};
  const std::int64_t num_entries = std::min(table->whole_rows(), num_rows);
  return {.entry = add(DType::Int32, num_entries),
          .start = add(DType::Int32, num_entries + 1),
          .row = add(DType::Int32, num_rows)};
}

}  // namespace plenum::memory

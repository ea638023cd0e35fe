#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plenum/batch/capacity.h"
#include "plenum/describe/model_description.h"
#include "plenum/tensor/device.h"
#include "plenum/tensor/dtype.h"

namespace plenum::memory {

/// What memory is planned for, where micro-batches of this capacity are computed: on the GPU counts are
/// rounded up, so that few shapes occur.
batch::Capacity computed_capacity(const batch::Capacity& capacity, tensor::Device device);

// What counts are rounded up to there.
std::int64_t computed_rows(std::int64_t num_rows, tensor::Device device);
std::int64_t computed_labels(std::int64_t num_labels, tensor::Device device);
std::int64_t computed_sequences(std::int64_t num_sequences, tensor::Device device);

/// Where the lists of a micro-batch lie in the GPU's memory, each in the room for the longest. The CPU reads
/// them where they are.
struct MicroBatchLayout {
  struct Field {
    std::size_t offset = 0;
    tensor::DType dtype = tensor::DType::Int32;
    std::int64_t capacity = 0;
  };
  struct GroupFields {
    Field entry, start, row;
  };

  /// Of nothing.
  MicroBatchLayout() = default;
  /// For micro-batches up to a computed_capacity.
  MicroBatchLayout(const describe::ModelDescription& model, const batch::Capacity& capacity);

  Field id, segment, position, row_sample;
  Field sample;
  /// Of each objective.
  std::array<Field, batch::kMostObjectives> labelled_row, label;
  Field read_sample, read_position;
  GroupFields by_word, by_position, by_segment;
  Field work_counts, tiles, gaps;
  std::size_t num_bytes = 0;

 private:
  Field add(tensor::DType dtype, std::int64_t capacity);
  GroupFields add_groups(const describe::Table* table, std::int64_t num_rows);
};

}  // namespace plenum::memory

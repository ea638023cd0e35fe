#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/describe/model_description.h"
#include "plenum/model/micro_batch_views.h"
#include "plenum/tensor/cuda_stream.h"
#include "plenum/tensor/memory_plan.h"

namespace plenum::model {

/// What memory is planned for, where micro-batches of this capacity are computed: on the GPU counts are
/// rounded up, so that few shapes occur.
batch::Capacity computed_capacity(const batch::Capacity& capacity, tensor::Device device);

/// The rows that a micro-batch of so many is computed with.
std::int64_t computed_rows(std::int64_t num_rows, tensor::Device device);

/// Where kernels find a micro-batch. On the CPU that is the micro-batch itself. On the GPU it is
/// copied to a place of its own, where everything always lies at the same address.
class MicroBatchStaging {
 public:
  /// For micro-batches up to a computed_capacity. Borrows the description.
  MicroBatchStaging(const describe::ModelDescription& model, const batch::Capacity& capacity,
                    tensor::MemoryPlan& plan);

  /// Lets `copies` bring a micro-batch to its place; kernels may read it when they are done. Borrows the
  /// micro-batch until then, on the CPU until the next. Checks it: nobody looks at indices on a GPU.
  const MicroBatchViews& put(const batch::MicroBatch& micro_batch, const tensor::CudaStream* copies);
  /// What was put last.
  const MicroBatchViews& views() const { return views_; }

 private:
  /// A list of the micro-batch in the room for the longest.
  struct Field {
    std::size_t offset = 0;
    tensor::DType dtype = tensor::DType::Int32;
    std::int64_t capacity = 0;
  };
  struct GroupFields {
    Field entry, start, row;
  };

  Field add(tensor::DType dtype, std::int64_t capacity);
  GroupFields add_groups(std::int64_t num_entries, std::int64_t num_rows);
  template <typename Element>
  tensor::ConstTensorView write(const Field& field, std::span<const Element> values, std::int64_t count,
                                Element rest);
  kernels::RowGroups write(const GroupFields& fields, const batch::GroupedRows& grouped,
                           std::int64_t num_rows);
  /// To pinned memory. The views are of where it goes.
  MicroBatchViews write(const batch::MicroBatch& micro_batch);
  /// As it lies in the host's memory.
  MicroBatchViews borrow(const batch::MicroBatch& micro_batch);

  const describe::ModelDescription* model_;
  Field id_, segment_, position_, row_sample_;
  Field start_, label_, sample_;
  Field masked_row_, masked_label_;
  Field read_sample_, read_position_;
  GroupFields by_word_, by_position_, by_segment_;
  Field work_counts_, tiles_, gaps_;
  std::size_t num_bytes_ = 0;
  tensor::TensorView room_;                       ///< on the GPU
  std::unique_ptr<tensor::PinnedMemory> pinned_;  ///< of the same layout
  // On the CPU, of what was put last: the only part that is not the micro-batch's own.
  std::vector<std::int64_t> read_samples_;
  std::vector<std::int32_t> read_positions_;
  MicroBatchViews views_;
};

}  // namespace plenum::model

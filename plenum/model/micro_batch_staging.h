#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/describe/model_description.h"
#include "plenum/memory/micro_batch_layout.h"
#include "plenum/model/micro_batch_views.h"
#include "plenum/tensor/cuda_stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::model {

/// Where kernels find a micro-batch. On the CPU that is the micro-batch itself. On the GPU it is
/// copied to a place of its own, where everything always lies at the same address.
class MicroBatchStaging {
 public:
  /// On the CPU. Borrows the description.
  explicit MicroBatchStaging(const describe::ModelDescription& model) : model_(&model) {}
  /// For micro-batches up to a computed_capacity, in a room of the GPU that MicroBatchLayout says the size
  /// of. Borrows the description.
  MicroBatchStaging(const describe::ModelDescription& model, const batch::Capacity& capacity,
                    const tensor::TensorView& room);

  /// Lets `copies` bring a micro-batch to its place; kernels may read it when they are done. Borrows the
  /// micro-batch until then, on the CPU until the next. Checks it: nobody looks at indices on a GPU.
  const MicroBatchViews& put(const batch::MicroBatch& micro_batch, const tensor::CudaStream* copies);
  /// What was put last.
  const MicroBatchViews& views() const { return views_; }

 private:
  using Field = memory::MicroBatchLayout::Field;
  using GroupFields = memory::MicroBatchLayout::GroupFields;

  template <typename Element>
  tensor::ConstTensorView write(const Field& field, std::span<const Element> values, std::int64_t count,
                                Element rest);
  kernels::RowGroups write(const GroupFields& fields, const batch::GroupedRows& grouped,
                           std::int64_t num_rows);
  /// To pinned memory. The views are of where it goes.
  MicroBatchViews write(const batch::MicroBatch& micro_batch);
  void write_objectives(const batch::MicroBatch& micro_batch, MicroBatchViews& views);
  /// As it lies in the host's memory.
  MicroBatchViews borrow(const batch::MicroBatch& micro_batch);

  const describe::ModelDescription* model_;
  memory::MicroBatchLayout layout_;
  tensor::TensorView room_;                       ///< on the GPU
  std::unique_ptr<tensor::PinnedMemory> pinned_;  ///< of the same layout
  // On the CPU, of what was put last: the only part that is not the micro-batch's own.
  std::vector<std::int64_t> read_samples_;
  std::vector<std::int32_t> read_positions_;
  MicroBatchViews views_;
};

}  // namespace plenum::model

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plenum/describe/model_description.h"
#include "plenum/model/parameters.h"
#include "plenum/pipeline/stage_program.h"
#include "plenum/schedule/core/dataflow.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::pipeline {

/// Memory in which values of Float32 travel between ranks, and who copies them there: the queue of the
/// data-parallel lane where that is a device's.
struct Wire {
  tensor::TensorView memory;
  std::optional<tensor::Stream> queue = std::nullopt;

  /// The place of a tensor that begins there.
  tensor::TensorView part(std::int64_t offset, const tensor::TensorView& like) const;
  void copy(const tensor::ConstTensorView& from, const tensor::TensorView& to) const;
  void set_zero(const tensor::TensorView& view) const;
};

/// GatherPreconditioned on one rank: what each holder of a stage has made of the gradients of the linear maps
/// that it owns takes the place of these gradients on all of them, layer by layer.
class MapGather {
 public:
  /// Borrows the model and the gradients. The wire has room for the weights of a layer.
  MapGather(const schedule::Schedule& schedule, schedule::Rank rank, const describe::ModelDescription& model,
            const model::BertGradients& gradients, Wire wire);

  /// As StageProgram says.
  PartitionedElements to_partition(const ActionRun& run) const;
  void communicated(const ActionRun& run) const;

 private:
  /// Where the gradients of a layer's maps lie when they travel: those of the first owner first.
  struct Layout {
    std::vector<std::int64_t> offsets;  ///< by map
    std::vector<bool> is_own;           ///< by map
    std::vector<std::size_t> counts;    ///< by holder
  };

  static Layout layout_of(const schedule::Dataflow& dataflow, schedule::Rank rank, schedule::StageId stage,
                          std::size_t layer, const describe::ModelDescription& model);

  const model::BertGradients& gradients_;
  Wire wire_;
  std::vector<Layout> of_layers_;  ///< where a layer has several holders
};

}  // namespace plenum::pipeline

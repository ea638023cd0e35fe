#pragma once

#include "plenum/describe/parameter_table.h"
#include "plenum/model/parameters.h"
#include "plenum/tensor/arena.h"
#include "plenum/tensor/memory_layout.h"
#include "plenum/tensor/memory_plan.h"
#include "plenum/tensor/stream.h"

namespace plenum::train {

/// All weights of a model that several ranks hold together, in a GPU's memory, as evaluation reads them.
class WholeOnGpu {
 public:
  /// The memory that it takes.
  static tensor::MemoryLayout plan_memory(const describe::ParameterTable& table,
                                          const tensor::Precision& precision);

  /// Borrows a stream of the GPU.
  WholeOnGpu(const describe::ParameterTable& table, const tensor::Stream& stream);

  model::FlatWeights weights() const { return {.exact_N = exact_N_, .compute_N = compute_N_}; }
  /// Overwrites them with those in the host's memory.
  void put(const tensor::ConstTensorView& weights_N) const;

 private:
  const tensor::Stream& stream_;
  tensor::Arena arena_;
  tensor::MemoryPlan memory_;
  tensor::TensorView exact_N_;
  tensor::TensorView compute_N_;
};

}  // namespace plenum::train

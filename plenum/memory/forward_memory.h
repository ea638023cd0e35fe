#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plenum/batch/capacity.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/memory/activation_layout.h"
#include "plenum/tensor/device.h"
#include "plenum/tensor/memory_layout.h"
#include "plenum/tensor/memory_plan.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::memory {

/// Whose weights a model reads that only runs forward.
enum class ForwardWeights : std::uint8_t { Own, Borrowed };

/// All that lies in its arena.
struct ForwardMemory {
  tensor::TensorView exact_N;    ///< left out where weights are borrowed
  tensor::TensorView compute_N;  ///< the same; exact_N where that is the same type
  tensor::TensorView scalars_C;  ///< kernels::StepScalar
  InferenceMemory model;
  tensor::TensorView scratch;
  tensor::TensorView micro_batch;  ///< Byte: as MicroBatchLayout says; on the GPU
};

/// Lays it out for micro-batches up to the capacity.
ForwardMemory plan_forward_memory(const describe::ParameterTable& table, const batch::Capacity& capacity,
                                  std::size_t num_threads, ForwardWeights weights, tensor::MemoryPlan& plan);

/// Of a model without heads, whose rows are pooled: all that lies in its arena.
struct EncoderMemory {
  /// For a micro-batch under way. There are several, so that one is brought and fetched while another is
  /// computed.
  struct Place {
    tensor::TensorView micro_batch;  ///< as ForwardMemory has it
    tensor::TensorView pooled_SD;    ///< Float32
  };
  static constexpr std::size_t kNumPlaces = 2;

  tensor::TensorView exact_N, compute_N;  ///< as ForwardMemory has its own
  InferenceMemory model;
  tensor::TensorView scratch;
  std::array<Place, kNumPlaces> places;
};

/// The same for micro-batches up to the capacity, whose vectors are as many as sequences.
EncoderMemory plan_encoder_memory(const describe::ParameterTable& table, const batch::Capacity& capacity,
                                  std::size_t num_threads, tensor::MemoryPlan& plan);

/// Every byte of ForwardMemory, by purpose: as memory::plan_memory.
tensor::MemoryLayout plan_forward(const describe::ParameterTable& table, const batch::Capacity& capacity,
                                  std::size_t num_threads, ForwardWeights weights, tensor::Device device);

}  // namespace plenum::memory

#include "plenum/memory/forward_memory.h"

#include <tuple>
#include <utility>

#include "plenum/memory/micro_batch_layout.h"
#include "plenum/workspace/optimizer.h"

namespace plenum::memory {

using tensor::DType;
using tensor::Role;
using tensor::TensorView;

namespace {

/// Exact, and as they are computed with.
std::pair<TensorView, TensorView> plan_weights(const describe::ParameterTable& table,
                                               tensor::MemoryPlan& plan) {
  const tensor::Shape flat{table.num_elements()};
  const TensorView exact_N = plan.add("parameters", Role::Master, flat);
  return {exact_N, plan.precision().shares_weights() ? exact_N : plan.add("parameters", Role::Weight, flat)};
}

/// Left out where the CPU reads it where it is.
TensorView plan_micro_batch(const describe::ModelDescription& model, const batch::Capacity& capacity,
                            tensor::MemoryPlan& plan) {
  if (plan.device() == tensor::Device::Cpu) return {};
  const auto bytes = static_cast<std::int64_t>(MicroBatchLayout(model, capacity).num_bytes);
  return plan.add("micro-batches", DType::Byte, {bytes});
}

}  // namespace

ForwardMemory plan_forward_memory(const describe::ParameterTable& table, const batch::Capacity& given,
                                  std::size_t num_threads, ForwardWeights weights, tensor::MemoryPlan& plan) {
  const batch::Capacity capacity = computed_capacity(given, plan.device());
  ForwardMemory memory;
  if (weights == ForwardWeights::Own) std::tie(memory.exact_N, memory.compute_N) = plan_weights(table, plan);
  memory.scalars_C = plan.add("scratch", DType::Float64, {workspace::kNumStepScalars});
  memory.model = plan_inference_memory(table.model(), capacity, plan);
  memory.scratch = plan_scratch(table, capacity, num_threads, plan);
  memory.micro_batch = plan_micro_batch(table.model(), capacity, plan);
  return memory;
}

EncoderMemory plan_encoder_memory(const describe::ParameterTable& table, const batch::Capacity& given,
                                  std::size_t num_threads, tensor::MemoryPlan& plan) {
  const batch::Capacity capacity = computed_capacity(given, plan.device());
  EncoderMemory memory;
  std::tie(memory.exact_N, memory.compute_N) = plan_weights(table, plan);
  memory.model = plan_inference_memory(table.model(), capacity, plan);
  memory.scratch = plan_scratch(table, capacity, num_threads, plan);
  for (EncoderMemory::Place& place : memory.places) {
    place.micro_batch = plan_micro_batch(table.model(), capacity, plan);
    place.pooled_SD = plan.add("vectors", Role::Statistic, {given.sequences, table.model().width});
  }
  return memory;
}

tensor::MemoryLayout plan_forward(const describe::ParameterTable& table, const batch::Capacity& capacity,
                                  std::size_t num_threads, ForwardWeights weights, tensor::Device device) {
  tensor::MemoryPlan sizes(device);
  plan_forward_memory(table, capacity, num_threads, weights, sizes);
  return sizes.layout();
}

}  // namespace plenum::memory

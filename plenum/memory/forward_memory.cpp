#include "plenum/memory/forward_memory.h"

#include "plenum/memory/micro_batch_layout.h"
#include "plenum/workspace/optimizer.h"

namespace plenum::memory {

using tensor::DType;
using tensor::Role;

ForwardMemory plan_forward_memory(const describe::ParameterTable& table, const batch::Capacity& given,
                                  std::size_t num_threads, ForwardWeights weights, tensor::MemoryPlan& plan) {
  const batch::Capacity capacity = computed_capacity(given, plan.device());
  ForwardMemory memory;
  const tensor::Shape flat{table.num_elements()};
  if (weights == ForwardWeights::Own) {
    memory.exact_N = plan.add("parameters", Role::Master, flat);
    memory.compute_N =
        plan.precision().shares_weights() ? memory.exact_N : plan.add("parameters", Role::Weight, flat);
  }
  memory.scalars_C = plan.add("scratch", DType::Float64, {workspace::kNumStepScalars});
  memory.model = plan_inference_memory(table.model(), capacity, plan);
  memory.scratch = plan_scratch(table, capacity, num_threads, plan);
  if (plan.device() == tensor::Device::Cuda) {
    const auto bytes = static_cast<std::int64_t>(MicroBatchLayout(table.model(), capacity).num_bytes);
    memory.micro_batch = plan.add("micro-batches", DType::Byte, {bytes});
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

#include "plenum/memory/rank_memory.h"

#include "plenum/kernels/step_scalars.h"
#include "plenum/memory/activation_slots.h"

namespace plenum::memory {

using tensor::DType;
using tensor::Role;

RankMemory plan_rank_memory(const describe::ParameterTable& table, const schedule::Problem& problem,
                            std::size_t num_slots, const MemoryRequest& request, tensor::MemoryPlan& plan) {
  constexpr const char* kState = "optimizer state";
  const bool is_gpu = plan.device() == tensor::Device::Cuda;
  const tensor::Shape flat{table.num_elements()};
  const batch::Capacity capacity = computed_capacity(request.capacity, plan.device());
  RankMemory memory;
  memory.weights_N = plan.add("parameters", Role::Master, flat);
  memory.gradients_N = plan.add("gradients", Role::Gradient, flat);
  memory.first_moments_N = plan.add(kState, Role::State, flat);
  memory.second_moments_N = plan.add(kState, Role::State, flat);
  memory.compute_weights_N =
      plan.precision().shares_weights() ? memory.weights_N : plan.add("parameters", Role::Weight, flat);
  if (is_gpu) {
    memory.chunks_C4 = plan.add(kState, DType::Int64, {kernels::num_optimizer_chunks(flat_ranges(table)), 4});
  }
  memory.scalars_C = plan.add(kState, DType::Float64, {static_cast<std::int64_t>(kernels::kNumStepScalars)});
  memory.activations = plan_training_memory(table.model(), capacity, problem.recomputation, num_slots, plan);
  memory.scratch = plan_scratch(table, capacity, request.num_threads, plan);
  if (!is_gpu) return memory;
  const auto bytes = static_cast<std::int64_t>(MicroBatchLayout(table.model(), capacity).num_bytes);
  for (std::size_t i = 0; i < kStepsUnderWay * problem.num_micro_batches; ++i) {
    memory.micro_batches.push_back(plan.add("micro-batches", DType::Byte, {bytes}));
  }
  return memory;
}

tensor::MemoryLayout plan_memory(const describe::ParameterTable& table, const schedule::Schedule& schedule,
                                 schedule::Rank rank, const MemoryRequest& request) {
  tensor::MemoryPlan sizes(request.device, request.precision);
  plan_rank_memory(table, schedule.problem, ActivationSlots(schedule, rank).num_slots(), request, sizes);
  return sizes.layout();
}

std::vector<kernels::FlatRange> flat_ranges(const describe::ParameterTable& table) {
  std::vector<kernels::FlatRange> ranges;
  for (const describe::Parameter& parameter : table.parameters()) {
    ranges.push_back({parameter.begin, parameter.end(), parameter.is_decayed});
  }
  return ranges;
}

}  // namespace plenum::memory

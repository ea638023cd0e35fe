#include "plenum/memory/rank_memory.h"

#include <algorithm>

#include "plenum/memory/activation_slots.h"
#include "plenum/memory/schedule_shard.h"
#include "plenum/workspace/optimizer.h"

namespace plenum::memory {
namespace {

/// Into which the optimizer cuts what a rank updates of all parameters.
std::int64_t num_chunks(const describe::ParameterTable& table, const describe::ParameterShard& shard) {
  std::int64_t count = 0;
  for (const describe::ParameterShard::Bucket& bucket : shard.buckets()) {
    for (const describe::Parameter& parameter : table.parameters()) {
      const std::int64_t begin = std::max(parameter.begin, bucket.own.begin);
      const std::int64_t end = std::min(parameter.end(), bucket.own.end);
      if (begin < end) count += workspace::num_optimizer_chunks(end - begin);
    }
  }
  return count;
}

}  // namespace

using tensor::DType;
using tensor::Role;

RankMemory plan_rank_memory(const describe::ParameterTable& table, const schedule::Problem& problem,
                            const describe::ParameterShard& shard, std::size_t num_slots,
                            const MemoryRequest& request, tensor::MemoryPlan& plan) {
  constexpr const char* kState = "optimizer state";
  const bool is_gpu = plan.device() == tensor::Device::Cuda;
  const tensor::Shape flat{table.num_elements()};
  const batch::Capacity capacity = computed_capacity(request.capacity, plan.device());
  RankMemory memory;
  memory.weights_N = plan.add("parameters", Role::Master, flat);
  memory.gradients_N = plan.add("gradients", Role::Gradient, flat);
  memory.first_moments_S = plan.add(kState, Role::State, {shard.num_elements()});
  memory.second_moments_S = plan.add(kState, Role::State, {shard.num_elements()});
  memory.compute_weights_N =
      plan.precision().shares_weights() ? memory.weights_N : plan.add("parameters", Role::Weight, flat);
  if (is_gpu) {
    memory.chunks_C4 = plan.add(kState, DType::Int64, {num_chunks(table, shard), 4});
  }
  if (problem.has_tensor_norms && (!shard.is_whole() || table.model().tensor_parallel.is_divided())) {
    memory.tensor_squares_P2 = plan.add(kState, DType::Float64, {std::ssize(table.parameters()), 2});
  }
  memory.scalars_C = plan.add(kState, DType::Float64, {workspace::kNumStepScalars});
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
  plan_rank_memory(table, schedule.problem, schedule_shard(table, schedule, rank),
                   ActivationSlots(schedule, rank).num_slots(), request, sizes);
  return sizes.layout();
}

}  // namespace plenum::memory

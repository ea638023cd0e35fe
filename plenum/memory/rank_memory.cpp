#include "plenum/memory/rank_memory.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/describe/norm_elements.h"
#include "plenum/memory/divided_layers.h"
#include "plenum/memory/hidden_matrices.h"
#include "plenum/memory/own_micro_batches.h"
#include "plenum/memory/schedule_shard.h"
#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/core/refreshes.h"
#include "plenum/workspace/optimizer.h"
#include "plenum/workspace/soap.h"

namespace plenum::memory {
namespace {

/// Into which the optimizer cuts what a rank updates of all parameters.
std::int64_t num_chunks(const describe::ParameterTable& table, const describe::ParameterShard& shard,
                        LayerUpdate layer_update) {
  std::int64_t count = 0;
  for (const describe::ParameterShard::Bucket& bucket : shard.buckets()) {
    for (const describe::Parameter& parameter : table.parameters()) {
      if (layer_update != LayerUpdate::AsOthers && describe::is_hidden_matrix(parameter)) continue;
      const std::int64_t begin = std::max(parameter.begin, bucket.own.begin);
      const std::int64_t end = std::min(parameter.end(), bucket.own.end);
      if (begin < end) count += workspace::num_optimizer_chunks(end - begin);
    }
  }
  return count;
}

using tensor::DType;
using tensor::Role;

constexpr const char* kParameters = "parameters";
constexpr const char* kGradients = "gradients";

std::int64_t size_of(const describe::ParameterShard::Bucket& bucket) {
  return bucket.elements.end - bucket.elements.begin;
}

std::int64_t largest_bucket(const describe::ParameterShard& shard) {
  std::int64_t most = 0;
  for (const describe::ParameterShard::Bucket& bucket : shard.buckets())
    most = std::max(most, size_of(bucket));
  return most;
}

/// Buckets take places in turn, as schedule::Dataflow::kBucketPlaces says; the last has one of its own.
std::vector<tensor::TensorView> plan_places(const char* purpose, Role role,
                                            const describe::ParameterShard& shard, tensor::MemoryPlan& plan) {
  constexpr std::size_t kPlaces = schedule::Dataflow::kBucketPlaces;
  const std::vector<describe::ParameterShard::Bucket>& buckets = shard.buckets();
  const std::size_t num_shared = buckets.size() - 1;
  std::vector<tensor::TensorView> places;
  for (std::size_t place = 0; place < std::min(kPlaces, num_shared); ++place) {
    std::int64_t most = 0;
    for (std::size_t i = place; i < num_shared; i += kPlaces) most = std::max(most, size_of(buckets[i]));
    places.push_back(plan.add(purpose, role, {most}));
  }
  std::vector<tensor::TensorView> of_buckets;
  for (std::size_t i = 0; i < num_shared; ++i) {
    const tensor::TensorView& place = places[i % kPlaces];
    of_buckets.push_back({place.raw(), place.dtype(), {size_of(buckets[i])}});
  }
  of_buckets.push_back(plan.add(purpose, role, {size_of(buckets.back())}));
  return of_buckets;
}

/// Weights as the optimizer keeps them and as passes read them.
void plan_weights(const describe::ParameterTable& table, const describe::ParameterShard& shard,
                  bool has_places, RankMemory& memory, tensor::MemoryPlan& plan) {
  const bool is_one_type = plan.precision().shares_weights();
  const bool has_shard = !shard.is_whole() && (has_places || !is_one_type);
  const tensor::Shape flat{table.num_elements()};
  const tensor::Shape own{shard.num_elements()};
  memory.weights_N = plan.add(kParameters, Role::Master, has_shard ? own : flat);
  if (has_places) {
    memory.gathered = plan_places(kParameters, is_one_type ? Role::Master : Role::Weight, shard, plan);
  } else {
    memory.compute_weights_N = is_one_type ? memory.weights_N : plan.add(kParameters, Role::Weight, flat);
  }
  if (!has_shard || is_one_type) return;
  if (memory.compute_weights_N) {  // there is an arena
    for (const describe::ParameterShard::Bucket& bucket : shard.buckets())
      memory.gathered.push_back(memory.compute_weights_N.rows(bucket.elements.begin, size_of(bucket)));
  }
  memory.exact_norms_E = plan.add(kParameters, Role::Master, {describe::NormElements(table).count()});
}

/// What Muon works in beside the flat buffers.
void plan_muon(const describe::ParameterTable& table, const char* purpose, RankMemory& memory,
               tensor::MemoryPlan& plan) {
  const std::vector<workspace::FlatMatrices> groups = hidden_matrices(table);
  memory.muon_room = plan.add(purpose, Role::Weight, {workspace::newton_schulz_room(plan.device(), groups)});
  if (plan.device() == tensor::Device::Cpu) return;
  memory.muon_chunks_C8 =
      plan.add(purpose, DType::Int64, {workspace::num_matrix_chunks(groups), workspace::kMatrixChunkNumbers});
}

/// The same for SOAP, and what it keeps: of the matrices that the rank works on. Of others it works in the
/// room alone.
void plan_soap(const std::vector<workspace::FlatMatrices>& groups,
               const std::vector<workspace::FlatMatrices>& others, const schedule::Schedule& schedule,
               const char* purpose, std::int64_t limit, RankMemory& memory, tensor::MemoryPlan& plan) {
  memory.soap_state = plan.add(purpose, Role::State, {workspace::soap_state_elements(groups, limit)});
  const std::int64_t room = std::max(workspace::soap_room_elements(plan.device(), groups, limit),
                                     workspace::soap_room_elements(plan.device(), others, limit));
  memory.soap_room = plan.add(purpose, Role::State, {room});
  const schedule::Refreshes refreshes(schedule);
  if (refreshes.max_age() == 0 && !refreshes.has_pieces()) return;
  // Half of the state is bases.
  const std::int64_t num_factors = memory.soap_state.num_elements() / 2;
  for (std::size_t place = 0; place < refreshes.num_places(); ++place)
    memory.soap_factors.push_back(plan.add(purpose, Role::State, {num_factors}));
}

/// The weights of a layer, where holders of a stage send each other their directions.
tensor::TensorView plan_map_wire(const std::vector<DividedLayer>& layers, const char* purpose,
                                 tensor::MemoryPlan& plan) {
  std::int64_t most = 0;
  for (const DividedLayer& layer : layers) {
    if (layer.others.empty()) continue;
    std::int64_t elements = 0;
    for (const workspace::FlatMatrices& matrix : layer.own) elements += matrix.num_elements();
    for (const workspace::FlatMatrices& matrix : layer.others) elements += matrix.num_elements();
    most = std::max(most, elements);
  }
  return most == 0 ? tensor::TensorView() : plan.add(purpose, DType::Float32, {most});
}

tensor::TensorView plan_tied_rows(const describe::ParameterTable& table, const schedule::Problem& problem,
                                  const batch::Capacity& capacity, const MemoryRequest& request,
                                  tensor::MemoryPlan& plan) {
  const describe::Table& words = table.model().embedding.words;
  const std::int64_t most =
      request.words_of_step.value_or(static_cast<std::int64_t>(problem.num_micro_batches) * capacity.rows);
  return plan.add(kGradients, Role::Gradient, {std::min(words.num_rows, most), words.width});
}

}  // namespace

RankMemory plan_rank_memory(const describe::ParameterTable& table, const schedule::Schedule& schedule,
                            schedule::Rank rank, const describe::ParameterShard& shard,
                            const ActivationSlots& slots, const MemoryRequest& request,
                            tensor::MemoryPlan& plan) {
  const schedule::Problem& problem = schedule.problem;
  constexpr const char* kState = "optimizer state";
  const bool is_gpu = plan.device() == tensor::Device::Cuda;
  const tensor::Shape flat{table.num_elements()};
  const batch::Capacity capacity = computed_capacity(request.capacity, plan.device());
  RankMemory memory;
  const tensor::Shape own{shard.num_elements()};
  const bool has_places = problem.sharding == schedule::Sharding::Parameters && !shard.is_whole();
  const bool has_flights = problem.sharding >= schedule::Sharding::Gradients && !shard.is_whole();
  plan_weights(table, shard, has_places, memory, plan);
  memory.gradients_N = plan.add(kGradients, Role::Gradient, has_flights ? own : flat);
  if (has_flights) memory.flights = plan_places(kGradients, Role::Gradient, shard, plan);
  if (request.reduce_dtype != DType::Float32) {
    base::require(!has_flights, "gradients travel in fp32 where they are sharded; leave out --reduce-dtype");
    base::check(!problem.has_tied_halves, "rows of words travel in fp32");
    memory.wire_B = plan.add(kGradients, request.reduce_dtype, {largest_bucket(shard)});
  }
  if (problem.has_tied_halves) memory.tied_rows_RD = plan_tied_rows(table, problem, capacity, request, plan);
  memory.first_moments_S = plan.add(kState, Role::State, own);
  memory.second_moments_S = plan.add(kState, Role::State, own);
  if (is_gpu) {
    memory.chunks_C4 = plan.add(kState, DType::Int64, {num_chunks(table, shard, request.layer_update), 4});
  }
  if (request.layer_update == LayerUpdate::Muon) plan_muon(table, kState, memory, plan);
  const std::vector<DividedLayer> divided = divided_layers(table, schedule, rank);
  if (request.layer_update == LayerUpdate::Soap) {
    plan_soap(divided.empty() ? hidden_matrices(table) : own_matrices(divided), matrices_of_others(divided),
              schedule, kState, request.soap_limit, memory, plan);
  }
  memory.map_wire = plan_map_wire(divided, kState, plan);
  if (problem.has_tensor_norms && (!shard.is_whole() || table.model().tensor_parallel.is_divided())) {
    memory.tensor_squares_P2 = plan.add(kState, DType::Float64, {std::ssize(table.parameters()), 2});
  }
  memory.scalars_C = plan.add(kState, DType::Float64, {workspace::kNumStepScalars});
  memory.activations = plan_training_memory(table.model(), capacity, slots.request(), plan);
  memory.scratch = plan_scratch(table, capacity, request.num_threads, plan);
  if (!is_gpu) return memory;
  const auto bytes = static_cast<std::int64_t>(MicroBatchLayout(table.model(), capacity).num_bytes);
  for (std::size_t i = 0; i < kStepsUnderWay * OwnMicroBatches(schedule, rank).count; ++i) {
    memory.micro_batches.push_back(plan.add("micro-batches", DType::Byte, {bytes}));
  }
  return memory;
}

tensor::MemoryLayout plan_memory(const describe::ParameterTable& table, const schedule::Schedule& schedule,
                                 schedule::Rank rank, const MemoryRequest& request) {
  tensor::MemoryPlan sizes(request.device, request.precision);
  plan_rank_memory(table, schedule, rank, schedule_shard(table, schedule, rank),
                   ActivationSlots(schedule, rank), request, sizes);
  plan_kfac_memory(table.model(), schedule, rank, request.kfac_averages, sizes);
  return sizes.layout();
}

}  // namespace plenum::memory

#include "plenum/plan/candidate_bounds.h"

#include <algorithm>

#include "plenum/describe/tensor_parallel.h"
#include "plenum/plan/planned_schedule.h"
#include "plenum/plan/simulated_step.h"
#include "plenum/plan/strategy_memory.h"
#include "plenum/schedule/generate/generator.h"

namespace plenum::plan {
namespace {

/// Whether the word table's gradient goes by itself, where a head shares it.
TiedGradient tied_gradient(const Strategy& strategy, std::size_t num_layers) {
  const bool has_halves = strategy.matrices.kind != schedule::Preconditioner::Kfac &&
                          strategy.device == tensor::Device::Cpu && num_layers > 1 &&
                          strategy.sharding <= schedule::Sharding::Optimizer &&
                          strategy.reduce_dtype == tensor::DType::Float32;
  return strategy.depth > 1 || has_halves ? TiedGradient::ByItself : TiedGradient::WithItsLayers;
}

/// K-FAC's holders always do; Muon's and SOAP's where the schedule has their work (with_matrix_work).
bool divides_matrices(const Strategy& strategy) {
  const MatrixWork& work = strategy.matrices;
  if (work.kind != schedule::Preconditioner::Shampoo && work.kind != schedule::Preconditioner::Muon)
    return work.kind == schedule::Preconditioner::Kfac;
  const bool is_in_schedule =
      work.kind == schedule::Preconditioner::Muon || work.every <= std::size_t{schedule::kMaxAge} + 1;
  return strategy.device == tensor::Device::Cpu && is_in_schedule;
}

}  // namespace

BoundedStrategy bounded(const Candidate& candidate, std::size_t most_replicas) {
  const Strategy& strategy = candidate.strategy;
  BoundedStrategy result{
      .replicas = strategy.replicas,
      .slices = strategy.slices,
      .depth = strategy.depth,
      .stage_begins = candidate.stage_begins,
      .num_buckets = candidate.num_buckets,
      .sharding = strategy.sharding,
      .micro_batches = candidate.limits.micro_batches_per_replica,
      .reduced_bytes = strategy.reduced_bytes(),
      .divides_matrices = divides_matrices(strategy),
      .num_seen_replicas = std::min(strategy.replicas, most_replicas),
      .num_written_replicas = std::min(strategy.replicas, num_written_replicas(strategy, most_replicas))};
  const MatrixWork& matrices = strategy.matrices;
  if (matrices.kind == schedule::Preconditioner::Kfac && matrices.fill == BubbleFill::Off)
    result.curvature_share = 1 / static_cast<double>(matrices.every);
  if (strategy.depth == 1) return result;
  const schedule::Generator& generator = schedule::generator_named(strategy.pipeline);
  result.is_tied_apart = true;
  result.splits_backward = generator.splits_backward;
  if (generator.has_chunks) result.placement = StagePlacement::Chunks;
  if (generator.depth_multiple > 1) result.placement = StagePlacement::BothWays;
  const std::size_t num_micro_batches = candidate.limits.micro_batches_per_replica;
  if (generator.name == "gpipe") result.alive_micro_batches = num_micro_batches;
  if (generator.name == "1f1b") result.alive_micro_batches = std::min(strategy.depth, num_micro_batches);
  return result;
}

CandidateBounds::CandidateBounds(const StrategyRequest& request, const StepSampler& sampler,
                                 const Cluster& cluster, std::size_t num_steps, std::size_t most_replicas)
    : request_(request),
      sampler_(sampler),
      cluster_(cluster),
      num_steps_(num_steps),
      most_replicas_(most_replicas) {}

const describe::ModelDescription& CandidateBounds::slice(std::size_t slices) {
  const auto known = slices_.find(slices);
  if (known != slices_.end()) return known->second;
  return slices_
      .try_emplace(slices, describe::tensor_parallel_slice(request_.model, {.index = 0, .size = slices}))
      .first->second;
}

const std::vector<StepWork>& CandidateBounds::steps(const Strategy& strategy) {
  const auto [place, is_new] = steps_.try_emplace({strategy.replicas, strategy.micro_batches});
  if (!is_new) return place->second;
  std::vector<StepWork> steps =
      busiest_first(sampler_.sample(strategy.replicas, strategy.micro_batches, num_steps_), strategy.replicas,
                    request_.model);
  for (StepWork& step : steps) {
    const std::size_t of_replica = step.micro_batches.size() / strategy.replicas;
    step.micro_batches.resize(std::min(strategy.replicas, most_replicas_) * of_replica);
    step.micro_batches.shrink_to_fit();
  }
  place->second = std::move(steps);
  return place->second;
}

CandidateBounds::Terms CandidateBounds::terms(const Candidate& candidate) {
  const Strategy& strategy = candidate.strategy;
  const CutKey cut{strategy.replicas, strategy.micro_batches};
  const auto [work, is_new_work] = work_.try_emplace({strategy.slices, cut, strategy.recomputation});
  if (is_new_work) {
    const bool is_kfac = request_.matrices.kind == schedule::Preconditioner::Kfac;
    work->second = work_bound(slice(strategy.slices), strategy.recomputation, steps(strategy),
                              std::min(strategy.replicas, most_replicas_), cluster_,
                              is_kfac ? Curvature::Counted : Curvature::LeftOut);
  }
  const TiedGradient tied = tied_gradient(strategy, request_.model.layers.size());
  const auto [parameters, is_new] = parameters_.try_emplace({strategy.slices, tied, strategy.matrices.fill});
  if (is_new)
    parameters->second =
        parameter_bound(slice(strategy.slices), strategy.update, strategy.matrices, tied, cluster_);
  const auto [memory, is_new_memory] =
      memory_.try_emplace({strategy.slices, cut, strategy.recomputation, strategy.sharding});
  if (is_new_memory)
    memory->second = memory_bound(slice(strategy.slices), strategy, candidate.limits.capacity);
  return {&work->second, &parameters->second, &memory->second};
}

double CandidateBounds::least_seconds(const Candidate& candidate) {
  const Terms of_candidate = terms(candidate);
  return least_step_seconds(bounded(candidate, most_replicas_), *of_candidate.work, *of_candidate.parameters,
                            cluster_);
}

double CandidateBounds::least_bytes(const Candidate& candidate) {
  const bool has_all = processes_of(cluster_, request_.num_ranks) == Processes::One;
  const std::size_t num_replicas = has_all ? candidate.strategy.replicas : std::size_t{1};
  const auto given = static_cast<std::size_t>(cluster_.overhead_bytes);
  return static_cast<double>(num_replicas) *
             least_peak_bytes(bounded(candidate, most_replicas_), *terms(candidate).memory) +
         static_cast<double>(outside_bytes(candidate.strategy.device, has_all, given));
}

}  // namespace plenum::plan

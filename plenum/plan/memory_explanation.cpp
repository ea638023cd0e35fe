#include "plenum/plan/memory_explanation.h"

#include <algorithm>
#include <numeric>

#include "plenum/base/check.h"
#include "plenum/memory/activation_slots.h"
#include "plenum/plan/planned_schedule.h"

namespace plenum::plan {
namespace {

/// Arenas of layouts that differ from a candidate's.
class Variants {
 public:
  Variants(const StrategyRequest& request, const StepSampler& sampler, const Cluster& cluster)
      : request_(request), sampler_(sampler), cluster_(cluster) {}

  AbridgedSchedule schedule(const Strategy& strategy, const StepLimits& limits) const {
    constexpr std::size_t kReplicas = 2;
    const std::vector<StepWork> steps = sampler_.sample(strategy.replicas, strategy.micro_batches, 1);
    return planned_schedule(strategy, request_.model, sampler_.typical(), limits, steps.front(), cluster_,
                            kReplicas)
        .steps;
  }
  std::vector<tensor::MemoryLayout> arenas(const Strategy& strategy, const StepLimits& limits) const {
    return rank_arenas(strategy, request_.model, schedule(strategy, limits),
                       {.capacity = limits.capacity, .num_threads = cluster_.threads});
  }

 private:
  const StrategyRequest& request_;
  const StepSampler& sampler_;
  const Cluster& cluster_;
};

std::size_t total_of(const std::vector<tensor::MemoryLayout>& arenas) {
  return std::transform_reduce(arenas.begin(), arenas.end(), std::size_t{0}, std::plus<>(),
                               [](const tensor::MemoryLayout& arena) { return arena.num_bytes(); });
}

std::size_t most_of(const std::vector<tensor::MemoryLayout>& arenas) {
  std::size_t most = 0;
  for (const tensor::MemoryLayout& arena : arenas) most = std::max(most, arena.num_bytes());
  return most;
}

/// As many ranks, each replica's pipeline become replicas of their own; their micro-batches have as many
/// rows.
std::optional<std::size_t> bytes_without_pipeline(const Candidate& candidate, const StepSampler& sampler,
                                                  const Variants& variants) {
  Strategy flat = candidate.strategy;
  flat.replicas *= flat.depth;
  flat.depth = 1;
  flat.stage_layers.clear();
  const batch::Capacity& capacity = candidate.limits.capacity;
  flat.micro_batches = {.tokens = std::max(capacity.rows, capacity.max_length)};
  try {
    const StepLimits limits = sampler.limits(flat.replicas, flat.micro_batches);
    return total_of(variants.arenas(flat, limits)) * flat.replicas;
  } catch (const base::UserError&) {
    return std::nullopt;  // a step has too few sequences for so many
  }
}

/// The layers over the stages with so many at the ends, the rest as evenly as can be; nothing if that is
/// none.
std::optional<std::vector<std::int64_t>> cut_of(std::int64_t num_layers, std::size_t num_stages,
                                                std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> layers(num_stages, 0);
  layers.front() = first;
  layers.back() = last;
  const auto num_middle = static_cast<std::int64_t>(num_stages) - 2;
  const std::int64_t rest = num_layers - first - last;
  if (num_middle == 0 ? rest != 0 : rest < num_middle) return std::nullopt;
  for (std::int64_t i = 0; i < num_middle; ++i)
    layers[static_cast<std::size_t>(i) + 1] = rest * (i + 1) / num_middle - rest * i / num_middle;
  return layers;
}

/// Of cuts with one stage on a rank.
std::optional<MemoryExplanation::Cut> better_cut(const Candidate& candidate, const StrategyRequest& request,
                                                 const Variants& variants, std::size_t total_bytes) {
  const auto num_layers = static_cast<std::int64_t>(request.model.layers.size());
  const auto& begins = candidate.stage_begins;
  if (begins.size() != candidate.strategy.depth + 1) return std::nullopt;
  // Every cut would have bubbles of its own to fill.
  if (candidate.strategy.matrices.fill != BubbleFill::Off) return std::nullopt;
  constexpr double kNoticed = 0.99;
  std::optional<MemoryExplanation::Cut> best;
  for (std::int64_t first = 1; first <= begins[1]; ++first) {
    for (std::int64_t last = 1; last < num_layers; ++last) {
      const auto layers = cut_of(num_layers, candidate.strategy.depth, first, last);
      if (!layers) continue;
      Strategy strategy = candidate.strategy;
      strategy.stage_layers = *layers;
      const std::vector<tensor::MemoryLayout> arenas = variants.arenas(strategy, candidate.limits);
      MemoryExplanation::Cut cut{.stage_layers = *layers,
                                 .total_bytes = total_of(arenas) * strategy.replicas,
                                 .most_bytes = most_of(arenas)};
      if (static_cast<double>(cut.total_bytes) > kNoticed * static_cast<double>(total_bytes)) continue;
      const auto key = [](const MemoryExplanation::Cut& one) {
        return std::pair(one.total_bytes, one.most_bytes);
      };
      if (!best || key(cut) < key(*best)) best = std::move(cut);
    }
  }
  return best;
}

}  // namespace

MemoryExplanation explain_memory(const Candidate& candidate, const StrategyRequest& request,
                                 const StepSampler& sampler, const Cluster& cluster) {
  const Strategy& strategy = candidate.strategy;
  const Variants variants(request, sampler, cluster);
  const AbridgedSchedule schedule = variants.schedule(strategy, candidate.limits);
  std::vector<tensor::MemoryLayout> arenas = variants.arenas(strategy, candidate.limits);
  MemoryExplanation explanation{.total_bytes = total_of(arenas) * strategy.replicas};
  const std::size_t most_bytes = most_of(arenas);
  for (std::size_t rank = 0; rank < arenas.size(); ++rank) {
    const memory::ActivationSlots slots(schedule.written, base::Rank::at(rank / strategy.slices));
    MemoryExplanation::RankMemory of_rank;
    for (const memory::TrainingRequest::Stage& stage : slots.request().stages) {
      if (of_rank.num_layers == 0) of_rank.first_layer = stage.layers.first.index();
      of_rank.num_layers += stage.layers.second.index() - stage.layers.first.index();
      of_rank.num_alive += stage.num_slots;
    }
    of_rank.arena = std::move(arenas[rank]);
    explanation.ranks.push_back(std::move(of_rank));
  }
  explanation.most =
      static_cast<std::size_t>(std::ranges::find(explanation.ranks, most_bytes,
                                                 [](const auto& rank) { return rank.arena.num_bytes(); }) -
                               explanation.ranks.begin());
  if (strategy.depth == 1) return explanation;
  const describe::Table& words = request.model.embedding.words;
  constexpr std::size_t kBuffers = 4;  // weights, gradient, two moments
  explanation.word_table_bytes =
      kBuffers * sizeof(float) * static_cast<std::size_t>(words.num_rows * words.width);
  explanation.without_pipeline_bytes = bytes_without_pipeline(candidate, sampler, variants);
  explanation.better_cut = better_cut(candidate, request, variants, explanation.total_bytes);
  return explanation;
}

}  // namespace plenum::plan

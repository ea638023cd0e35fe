#include "plenum/plan/strategies.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/describe/flops.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/plan/step_schedule.h"
#include "plenum/schedule/generate/balanced_layers.h"
#include "plenum/schedule/generate/generator.h"

namespace plenum::plan {
namespace {

using schedule::Recomputation;
using schedule::Sharding;

class Enumeration {
 public:
  Enumeration(const StrategyRequest& request, const StrategyGrid& grid, const StepSampler& sampler,
              const Cluster& cluster)
      : request_(request),
        grid_(grid),
        sampler_(sampler),
        cluster_(cluster),
        layer_costs_(describe::Flops(request.model).forward_of_layers(sampler.typical())) {}

  std::vector<Candidate> run() {
    for (std::size_t slices = 1; slices <= request_.num_ranks; ++slices) {
      if (request_.num_ranks % slices != 0 || !divide_by(slices)) continue;
      const std::size_t places = request_.num_ranks / slices;
      for (std::size_t depth = 1; depth <= std::min(places, num_layers()); ++depth) {
        if (places % depth != 0) continue;
        Strategy mesh{.replicas = places / depth,
                      .slices = slices,
                      .depth = depth,
                      .update = request_.update,
                      .matrices = request_.matrices,
                      .reduce_dtype = request_.reduce_dtype,
                      .device = cluster_.kind};
        if (mesh.replicas > sampler_.items_per_step()) continue;
        if (depth == 1) mesh.matrices.fill = BubbleFill::Off;
        if (reason_against(mesh)) continue;
        depth == 1 ? add_without_pipeline(mesh) : add_pipelines(mesh);
      }
    }
    return std::move(candidates_);
  }

 private:
  std::size_t num_layers() const { return request_.model.layers.size(); }

  /// Whether the model can be cut into so many slices; if so, it is.
  bool divide_by(std::size_t slices) {
    try {
      slice_.emplace(describe::tensor_parallel_slice(request_.model, {.index = 0, .size = slices}));
      return true;
    } catch (const base::UserError&) {
      return false;
    }
  }

  /// Nothing where no item fits into such a micro-batch, or a replica would have more of them than items.
  std::optional<StepLimits> limits(std::size_t replicas, const batch::MicroBatchCut& cut) {
    const auto [place, is_new] = limits_.try_emplace({replicas, cut});
    if (!is_new) return place->second;
    const std::size_t items = (sampler_.items_per_step() + replicas - 1) / replicas;
    if (cut.count && static_cast<std::size_t>(*cut.count) > items) return std::nullopt;
    try {
      place->second = sampler_.limits(replicas, cut);
    } catch (const base::UserError&) {
    }
    return place->second;
  }

  void add_without_pipeline(Strategy strategy) {
    std::set<std::pair<std::size_t, std::int64_t>> known;
    std::vector<batch::MicroBatchCut> cuts;
    for (const std::int64_t tokens : grid_.micro_batch_tokens) cuts.push_back({.tokens = tokens});
    if (grid_.micro_batches) cuts = {{.count = grid_.micro_batches}};
    for (const batch::MicroBatchCut& cut : cuts) {
      strategy.micro_batches = cut;
      const std::optional<StepLimits> found = limits(strategy.replicas, strategy.micro_batches);
      if (!found || !known.emplace(found->micro_batches_per_replica, found->capacity.rows).second) continue;
      for (const Recomputation recomputation :
           {Recomputation::None, Recomputation::Mlp, Recomputation::Full}) {
        strategy.recomputation = recomputation;
        add_shardings(strategy, *found);
      }
    }
  }

  void add_shardings(Strategy strategy, const StepLimits& limits) {
    for (const Sharding sharding :
         {Sharding::None, Sharding::Optimizer, Sharding::Gradients, Sharding::Parameters}) {
      if (sharding != Sharding::None && strategy.replicas == 1) continue;
      // Sharded gradients travel in fp32.
      if (sharding >= Sharding::Gradients && strategy.reduce_dtype != tensor::DType::Float32) continue;
      strategy.sharding = sharding;
      if (reason_against(strategy)) continue;
      add_buckets(strategy, limits, {0, static_cast<std::uint16_t>(num_layers())});
    }
  }

  void add_pipelines(Strategy strategy) {
    for (const schedule::Generator& generator : schedule::all_generators()) {
      if (!generator.is_pipeline()) continue;
      strategy.pipeline = generator.name;
      for (const std::size_t chunks : generator.has_chunks ? grid_.chunks : std::vector<std::size_t>{2}) {
        strategy.chunks = chunks;
        const std::size_t num_stages = strategy.depth * (generator.has_chunks ? chunks : 1);
        if (num_stages > num_layers()) continue;
        for (const Recomputation recomputation :
             {Recomputation::None, Recomputation::Mlp, Recomputation::Full}) {
          strategy.recomputation = recomputation;
          if (!reason_against(strategy)) add_cuts(strategy, num_stages);
        }
      }
    }
  }

  /// Layers by operations, and as many on every stage.
  void add_cuts(Strategy strategy, std::size_t num_stages) {
    const std::vector<std::uint16_t> balanced = balanced_begins(num_stages);
    std::vector<std::uint16_t> even(num_stages + 1);
    const std::size_t of_stage = num_layers() / num_stages;
    for (std::size_t i = 0; i <= num_stages; ++i) even[i] = static_cast<std::uint16_t>(i * of_stage);
    add_micro_batches(strategy, balanced);
    if (num_layers() % num_stages != 0 || even == balanced) return;
    strategy.stage_layers.assign(num_stages, static_cast<std::int64_t>(of_stage));
    add_micro_batches(strategy, even);
  }

  const std::vector<std::uint16_t>& balanced_begins(std::size_t num_stages) {
    std::vector<std::uint16_t>& begins = balanced_[num_stages];
    if (!begins.empty()) return begins;
    begins.push_back(0);
    for (const std::uint16_t layers : schedule::balanced_layers(layer_costs_, num_stages))
      begins.push_back(static_cast<std::uint16_t>(begins.back() + layers));
    return begins;
  }

  void add_micro_batches(Strategy strategy, const std::vector<std::uint16_t>& stage_begins) {
    std::vector<batch::MicroBatchCut> cuts;
    for (const std::int64_t of_place : grid_.micro_batches_per_place)
      cuts.push_back({.count = of_place * static_cast<std::int64_t>(strategy.depth)});
    if (grid_.micro_batches) cuts = {{.count = grid_.micro_batches}};
    for (const batch::MicroBatchCut& cut : cuts) {
      strategy.micro_batches = cut;
      const std::optional<StepLimits> found = limits(strategy.replicas, strategy.micro_batches);
      if (found) add_buckets(strategy, *found, stage_begins);
    }
  }

  void add_buckets(Strategy strategy, const StepLimits& limits,
                   const std::vector<std::uint16_t>& stage_begins) {
    const std::size_t num_stages = stage_begins.size() - 1;
    std::set<std::size_t> known;
    const describe::ParameterTable& table = table_of(strategy.slices);
    for (const std::int64_t bytes : grid_.bucket_bytes) {
      strategy.bucket_bytes = bytes;
      const std::size_t of_model =
          strategy.num_places() > 1 ? num_gradient_buckets(table, bytes) : std::size_t{1};
      const std::size_t of_stage = (of_model + num_stages - 1) / num_stages;
      if (!known.insert(of_stage).second) continue;
      candidates_.push_back(
          {.strategy = strategy, .limits = limits, .stage_begins = stage_begins, .num_buckets = of_stage});
    }
  }

  const describe::ParameterTable& table_of(std::size_t slices) {
    const auto known = tables_.find(slices);
    return known != tables_.end() ? known->second : tables_.try_emplace(slices, *slice_).first->second;
  }

  const StrategyRequest& request_;
  const StrategyGrid& grid_;
  const StepSampler& sampler_;
  const Cluster& cluster_;
  std::vector<double> layer_costs_;
  std::optional<describe::ModelDescription> slice_;
  std::map<std::pair<std::size_t, batch::MicroBatchCut>, std::optional<StepLimits>> limits_;
  std::map<std::size_t, std::vector<std::uint16_t>> balanced_;
  std::map<std::size_t, describe::ParameterTable> tables_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::vector<Candidate> enumerate(const StrategyRequest& request, const StrategyGrid& grid,
                                 const StepSampler& sampler, const Cluster& cluster) {
  base::require(request.num_ranks >= 1 && request.num_ranks <= cluster.num_devices(),
                "cluster {} has {} devices: --ranks is {}; --nodes says how many nodes there are",
                cluster.name, cluster.num_devices(), request.num_ranks);
  return Enumeration(request, grid, sampler, cluster).run();
}

}  // namespace plenum::plan

#include "plenum/plan/step_schedule.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/describe/flops.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/schedule/generate/balanced_layers.h"
#include "plenum/schedule/generate/data_parallel.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/generate/single.h"

namespace plenum::plan {
namespace {

/// Behind the last of several layers, the other layers hide the first half of the word table's reduction.
bool reduces_tied_halves(const Strategy& strategy, std::size_t num_layers) {
  const bool is_kfac = strategy.matrices.kind == schedule::Preconditioner::Kfac;
  return !is_kfac && num_layers > 1 && strategy.sharding <= schedule::Sharding::Optimizer &&
         strategy.reduce_dtype == tensor::DType::Float32 && strategy.device == tensor::Device::Cpu;
}

std::vector<std::uint16_t> layers_of_stages(const Strategy& strategy, const describe::ModelDescription& model,
                                            const batch::Work& typical, std::size_t num_stages) {
  const std::vector<std::int64_t>& asked = strategy.stage_layers;
  const std::size_t num_layers = model.layers.size();
  base::require(num_layers >= num_stages,
                "the model has {} for {} stages, and every stage needs one; give fewer --pp{}",
                num_layers == 1 ? "1 layer" : fmt::format("{} layers", num_layers), num_stages,
                schedule::generator_named(strategy.pipeline).has_chunks ? " or --chunks" : "");
  if (asked.empty())
    return schedule::balanced_layers(describe::Flops(model).forward_of_layers(typical), num_stages);
  base::require(asked.size() == num_stages, "--stage-layers must have a number for each of the {} stages: {}",
                num_stages, fmt::join(asked, ","));
  std::int64_t sum = 0;
  for (const std::int64_t layers : asked) sum += layers;
  base::require(sum == std::ssize(model.layers),
                "--stage-layers must add up to the {} layers of the model: {}", num_layers,
                fmt::join(asked, ","));
  return {asked.begin(), asked.end()};
}

}  // namespace

schedule::Schedule step_schedule(const Strategy& strategy, const describe::ModelDescription& model,
                                 const batch::Work& typical, std::size_t micro_batches_per_replica) {
  const bool is_pipeline = strategy.depth > 1;
  schedule::GeneratorOptions wanted{.depth = strategy.depth,
                                    .num_micro_batches = micro_batches_per_replica,
                                    .num_replicas = strategy.replicas,
                                    .stage_layers = {static_cast<std::uint16_t>(model.layers.size())},
                                    .num_chunks = strategy.chunks,
                                    .recomputation = strategy.recomputation};
  const describe::ParameterTable table(
      describe::tensor_parallel_slice(model, {.index = 0, .size = strategy.slices}));
  const bool is_tied = table.tied() != nullptr;
  if (strategy.num_places() > 1) {
    wanted.num_buckets = num_gradient_buckets(table, strategy.bucket_bytes);
    wanted.sharding = strategy.sharding;
    wanted.has_tied_halves = is_tied && !is_pipeline && reduces_tied_halves(strategy, model.layers.size());
    wanted.has_tied_parameters = wanted.has_tied_halves || (is_tied && is_pipeline);
  }
  // Where a tensor's parts lie on several ranks.
  const bool is_divided = wanted.sharding != schedule::Sharding::None || strategy.slices > 1;
  wanted.has_tensor_norms = is_divided && strategy.update == UpdateRule::Lamb;
  if (!is_pipeline) {
    return strategy.num_places() == 1 ? schedule::generate_single(wanted)
                                      : schedule::generate_data_parallel(wanted);
  }
  const schedule::Generator& generator = schedule::generator_named(strategy.pipeline);
  const std::size_t num_stages = generator.num_stages(wanted);
  wanted.stage_layers = layers_of_stages(strategy, model, typical, num_stages);
  // Of the whole model; a stage is a part of it.
  wanted.num_buckets = (wanted.num_buckets + num_stages - 1) / num_stages;
  return generator.generate(wanted);
}

std::size_t micro_batch_multiple(const Strategy& strategy) {
  const schedule::Generator& generator = schedule::generator_named(strategy.pipeline);
  return generator.has_chunks || generator.depth_multiple > 1 ? strategy.depth : 1;
}

AbridgedSchedule abridged_schedule(const Strategy& strategy, const describe::ModelDescription& model,
                                   const batch::Work& typical, std::size_t micro_batches_per_replica,
                                   std::size_t most_replicas) {
  base::check(most_replicas >= 2, "replicas of one kind are at least two: {}", most_replicas);
  Strategy few = strategy;
  few.replicas = std::min(strategy.replicas, most_replicas);
  AbridgedSchedule abridged{.written = step_schedule(few, model, typical, micro_batches_per_replica),
                            .whole = {}};
  abridged.whole = abridged.written;
  abridged.whole.problem.num_micro_batches =
      static_cast<std::uint32_t>(strategy.replicas * micro_batches_per_replica);
  for (std::size_t rank = few.num_places(); rank < strategy.num_places(); ++rank) {
    schedule::RankProgram idle{.stages = abridged.written.ranks[rank % strategy.depth].stages, .lanes = {}};
    for (schedule::LaneProgram& lane : idle.lanes) lane.end_step();
    abridged.whole.ranks.push_back(std::move(idle));
  }
  return abridged;
}

}  // namespace plenum::plan

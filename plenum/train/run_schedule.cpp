#include "plenum/train/run_schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/data/batches/masking.h"
#include "plenum/data/batches/objective_index.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/flops.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/schedule/check/check.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/muon_filler.h"
#include "plenum/schedule/fill/periodic_refresh.h"
#include "plenum/schedule/fill/shampoo_filler.h"
#include "plenum/schedule/generate/balanced_layers.h"
#include "plenum/schedule/generate/data_parallel.h"
#include "plenum/schedule/generate/single.h"
#include "plenum/train/gradient_buckets.h"

namespace plenum::train {
namespace {

/// Behind the last of several layers, the other layers hide the first half of the word table's reduction.
bool reduces_tied_halves(const RunOptions& options, const describe::ModelConfig& model) {
  const bool is_kfac = options.optimizer.optimizer.kind == optim::OptimizerKind::Kfac;
  return !is_kfac && model.num_layers > 1 && options.run.shard <= schedule::Sharding::Optimizer &&
         options.run.reduce_dtype == tensor::DType::Float32 && options.run.device == tensor::Device::Cpu;
}

std::vector<std::uint16_t> stage_layers(const RunOptions& options, const describe::ModelConfig& model,
                                        const batch::Work& typical, std::size_t num_stages) {
  const std::vector<std::int64_t>& asked = options.run.stage_layers;
  const auto num_layers = static_cast<std::size_t>(model.num_layers);
  base::require(num_layers >= num_stages,
                "the model has {} for {} stages, and every stage needs one; give fewer --pp{}",
                num_layers == 1 ? "1 layer" : fmt::format("{} layers", num_layers), num_stages,
                pipeline_of(options).has_chunks ? " or --chunks" : "");
  if (asked.empty())
    return schedule::balanced_layers(
        describe::Flops(describe::describe_bert(model)).forward_of_layers(typical), num_stages);
  base::require(asked.size() == num_stages, "--stage-layers must have a number for each of the {} stages: {}",
                num_stages, fmt::join(asked, ","));
  std::int64_t sum = 0;
  for (const std::int64_t layers : asked) sum += layers;
  base::require(sum == model.num_layers, "--stage-layers must add up to the {} layers of the model: {}",
                model.num_layers, fmt::join(asked, ","));
  return {asked.begin(), asked.end()};
}

bool has_several_holders(const schedule::Schedule& schedule) {
  std::vector<std::size_t> num_holders(schedule.num_stages());
  for (const schedule::RankProgram& rank : schedule.ranks) {
    for (const schedule::StageId stage : rank.stages) ++num_holders[stage.index()];
  }
  return std::ranges::any_of(num_holders, [](std::size_t count) { return count > 1; });
}

/// K-FAC's work in every so many steps, or Muon's and SOAP's where several ranks divide it.
schedule::Schedule with_matrix_work(schedule::Schedule schedule, const RunOptions& options,
                                    const describe::ModelConfig& model) {
  const optim::OptimizerOptions& optimizer = options.optimizer.optimizer;
  const std::size_t num_maps = num_kfac_maps(model);
  if (optimizer.kind == optim::OptimizerKind::Kfac) {
    return schedule::with_periodic_refresh(schedule, schedule::KfacFiller(num_maps),
                                           static_cast<std::size_t>(optimizer.kfac.every.value_or(1)));
  }
  if (options.run.device != tensor::Device::Cpu || !has_several_holders(schedule)) return schedule;
  if (optimizer.kind == optim::OptimizerKind::Muon)
    return schedule::with_periodic_refresh(schedule, schedule::MuonFiller(num_maps), 1);
  // Bases that are refreshed less often are left to the update.
  constexpr std::int64_t kMostSteps = std::int64_t{schedule::kMaxAge} + 1;
  if (optimizer.kind != optim::OptimizerKind::Soap || optimizer.soap.refresh_steps() > kMostSteps)
    return schedule;
  return schedule::with_periodic_refresh(schedule, schedule::ShampooFiller(num_maps, 1),
                                         static_cast<std::size_t>(optimizer.soap.refresh_steps()));
}

/// The number of micro-batches should be a multiple of it.
std::int64_t micro_batch_multiple(const RunOptions& options) {
  const schedule::Generator& generator = pipeline_of(options);
  return generator.has_chunks || generator.depth_multiple > 1 ? options.run.pp : 1;
}

}  // namespace

std::size_t num_kfac_maps(const describe::ModelConfig& model) {
  return describe::factor_shapes(describe::describe_bert(model).layers.front()).size();
}

const schedule::Generator& pipeline_of(const RunOptions& options) {
  const std::string& name = options.run.schedule;
  return schedule::generator_named(name.empty() ? "1f1b" : name);
}

schedule::Schedule make_plain_schedule(const RunOptions& options, const describe::ModelConfig& model,
                                       const batch::Work& typical, std::size_t micro_batches_per_replica) {
  const Mesh mesh = options.mesh();
  const bool is_pipeline = mesh.depth() > 1;
  schedule::GeneratorOptions wanted{.depth = mesh.depth(),
                                    .num_micro_batches = micro_batches_per_replica,
                                    .num_replicas = mesh.num_replicas(),
                                    .stage_layers = {static_cast<std::uint16_t>(model.num_layers)},
                                    .num_chunks = static_cast<std::size_t>(options.run.chunks),
                                    .recomputation = options.run.recompute};
  const describe::ParameterTable table(describe::tensor_parallel_slice(
      describe::describe_bert(model), {.index = 0, .size = mesh.num_slices()}));
  const bool is_tied = table.tied() != nullptr;
  if (mesh.num_places() > 1) {
    wanted.num_buckets = num_gradient_buckets(table, options.run.bucket_bytes.value_or(kBucketBytes));
    wanted.sharding = options.run.shard;
    wanted.has_tied_halves = is_tied && !is_pipeline && reduces_tied_halves(options, model);
    wanted.has_tied_parameters = wanted.has_tied_halves || (is_tied && is_pipeline);
  }
  // Where a tensor's parts lie on several ranks.
  const bool is_divided = wanted.sharding != schedule::Sharding::None || mesh.num_slices() > 1;
  wanted.has_tensor_norms =
      is_divided && options.optimizer.optimizer.update_kind() == optim::OptimizerKind::Lamb;
  if (is_pipeline) {
    const std::size_t num_stages = pipeline_of(options).num_stages(wanted);
    wanted.stage_layers = stage_layers(options, model, typical, num_stages);
    // Of the whole model; a stage is a part of it.
    wanted.num_buckets = (wanted.num_buckets + num_stages - 1) / num_stages;
  }
  if (is_pipeline) return pipeline_of(options).generate(wanted);
  return mesh.num_places() == 1 ? schedule::generate_single(wanted)
                                : schedule::generate_data_parallel(wanted);
}

schedule::Schedule make_schedule(const RunOptions& options, const describe::ModelConfig& model,
                                 const batch::Work& typical, std::size_t micro_batches_per_replica) {
  schedule::Schedule schedule = with_matrix_work(
      make_plain_schedule(options, model, typical, micro_batches_per_replica), options, model);
  schedule::require_checked(schedule);
  return schedule;
}

batch::Work typical_work(const data::SequenceSource& sequences, const data::TrainingDataOptions& options) {
  batch::Work work;
  const packing::LengthHistogram& histogram = sequences.histogram();
  const bool is_padded = options.layout == data::Layout::Padded;
  for (std::size_t i = 1; i < histogram.counts.size(); ++i) {
    const auto length = static_cast<std::int64_t>(i);
    const auto count = static_cast<std::int64_t>(histogram.counts[i]);
    work.tokens += count * (is_padded ? histogram.longest() : length);
    work.squared_lengths += count * length * length;
    work.sequences += count;
    work.labels[data::kMaskedTokens] += count * data::masked_count(length, options.mask_rate);
  }
  if (sequences.has_next_sentence()) work.labels[data::kNextSentence] = work.sequences;
  return work;
}

std::int64_t default_micro_batches(const RunOptions& options, const data::StepBatchSource& batches) {
  constexpr std::int64_t kForEachRank = 4;
  const auto replicas = static_cast<std::int64_t>(batches.num_ranks());
  const std::int64_t items = (static_cast<std::int64_t>(batches.items_per_step()) + replicas - 1) / replicas;
  std::int64_t count = std::min(kForEachRank * options.run.pp, items);
  if (options.data.micro_batch_tokens) {
    const std::int64_t items_of_one =
        std::max<std::int64_t>(1, *options.data.micro_batch_tokens / batches.least_micro_batch_tokens());
    count = std::max(count, (items + items_of_one - 1) / items_of_one);
  }
  const std::int64_t multiple = micro_batch_multiple(options);
  return (count + multiple - 1) / multiple * multiple;
}

std::string schedule_text(const schedule::Schedule& schedule) {
  const std::vector<std::uint16_t>& layers = schedule.problem.stage_layers;
  if (layers.size() == 1) return "";
  return fmt::format("{}, stages of {} and {} layers", schedule.name,
                     fmt::join(layers.begin(), layers.end() - 1, ", "), layers.back());
}

}  // namespace plenum::train

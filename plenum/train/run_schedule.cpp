#include "plenum/train/run_schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "plenum/data/batches/masking.h"
#include "plenum/data/batches/objective_index.h"
#include "plenum/describe/bert.h"
#include "plenum/plan/step_schedule.h"
#include "plenum/schedule/check/check.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/muon_filler.h"
#include "plenum/schedule/fill/periodic_refresh.h"
#include "plenum/schedule/fill/shampoo_filler.h"

namespace plenum::train {
namespace {

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

}  // namespace

std::size_t num_kfac_maps(const describe::ModelConfig& model) {
  return describe::factor_shapes(describe::describe_bert(model).layers.front()).size();
}

schedule::Schedule make_plain_schedule(const RunOptions& options, const describe::ModelConfig& model,
                                       const batch::Work& typical, std::size_t micro_batches_per_replica) {
  return plan::step_schedule(options.strategy(), describe::describe_bert(model), typical,
                             micro_batches_per_replica);
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
  const auto multiple = static_cast<std::int64_t>(plan::micro_batch_multiple(options.strategy()));
  return (count + multiple - 1) / multiple * multiple;
}

std::string schedule_text(const schedule::Schedule& schedule) {
  const std::vector<std::uint16_t>& layers = schedule.problem.stage_layers;
  if (layers.size() == 1) return "";
  return fmt::format("{}, stages of {} and {} layers", schedule.name,
                     fmt::join(layers.begin(), layers.end() - 1, ", "), layers.back());
}

}  // namespace plenum::train

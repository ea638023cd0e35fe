#include "plenum/train/run_schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "plenum/data/batches/masking.h"
#include "plenum/data/batches/objective_index.h"
#include "plenum/describe/bert.h"
#include "plenum/plan/matrix_schedule.h"
#include "plenum/plan/step_schedule.h"
#include "plenum/schedule/check/check.h"

namespace plenum::train {
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
  const plan::Strategy strategy = options.strategy();
  schedule::Schedule schedule =
      plan::with_matrix_work(make_plain_schedule(options, model, typical, micro_batches_per_replica),
                             strategy.matrices, strategy.device, describe::describe_bert(model));
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

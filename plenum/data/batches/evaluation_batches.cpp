#include "plenum/data/batches/evaluation_batches.h"

#include <algorithm>
#include <limits>

#include "plenum/base/check.h"
#include "plenum/base/permutation.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/data/batches/micro_batch_builder.h"
#include "plenum/data/batches/objective_index.h"
#include "plenum/data/batches/step_bounds.h"

namespace plenum::data {
namespace {

GlobalBatch draw_sequences(const SequenceSource& sequences, const EvaluationOptions& options) {
  const std::uint64_t total = sequences.histogram().num_sequences();
  base::require(total > 0, "{} has no sequences to evaluate on; prepare the text with --holdout, such as 1%",
                sequences.name());
  const std::int64_t most = options.max_sequences.value_or(std::numeric_limits<std::int64_t>::max());
  base::check(most >= 1, "at least one sequence must be asked for: {}", most);
  const base::KeyedPermutation draw(base::RandomFunction(options.seed, base::Purpose::Order), 0, total);
  GlobalBatch drawn;
  for (std::uint64_t i = 0; i < std::min(total, static_cast<std::uint64_t>(most)); ++i)
    drawn.sequence_ids.push_back(draw(i));
  return drawn;
}

StepBounds bounds_of(const SequenceSource& sequences, const EvaluationOptions& options,
                     std::int64_t num_sequences) {
  return bound_steps({.histogram = sequences.histogram(),
                      .plan = nullptr,
                      .layout = Layout::Unpadded,
                      .max_length = sequences.max_length(),
                      .items_per_step = num_sequences,
                      .num_ranks = 1,
                      .micro_batches = {.tokens = options.micro_batch_tokens},
                      .mask_rate = options.masking.rate,
                      .labels_sequences = sequences.has_next_sentence(),
                      .task = sequences.task_labels()});
}

}  // namespace

batch::Capacity most_evaluated(const SequenceSource& sequences, const EvaluationOptions& options) {
  const auto total = static_cast<std::int64_t>(sequences.histogram().num_sequences());
  batch::Capacity capacity =
      bounds_of(sequences, options, std::min(total, options.max_sequences.value_or(total))).capacity;
  capacity.max_length = sequences.max_length();
  return capacity;
}

EvaluationBatches::EvaluationBatches(const SequenceSource& sequences, const EvaluationOptions& options)
    : sequences_(sequences), masking_(options.masking, sequences.vocabulary(), options.seed, /*epoch=*/0) {
  const GlobalBatch drawn = draw_sequences(sequences, options);
  const std::vector<BatchSequence> measured = measure_sequences(drawn, sequences, options.masking.rate);
  const StepBounds bounds = bounds_of(sequences, options, std::ssize(measured));
  plans_ =
      fill_micro_batches(cut_items(drawn, measured, Layout::Unpadded, bounds.item_rows), bounds.capacity);
  capacity_.max_length = sequences.max_length();
  for (const MicroBatchPlan& plan : plans_) {
    capacity_.rows = std::max(capacity_.rows, plan.num_rows);
    std::int64_t& labels = capacity_.labels[kFirstObjective];
    labels = std::max(labels, plan.labels);
    capacity_.sequences = std::max(capacity_.sequences, static_cast<std::int64_t>(plan.sequences.size()));
  }
  if (sequences.has_next_sentence()) capacity_.labels[kNextSentence] = capacity_.sequences;
  for (const BatchSequence& sequence : measured) work_ += sequence.work();
}

batch::MicroBatch EvaluationBatches::make(std::size_t index) const {
  base::check(index < size(), "there is no such micro-batch: index={} of {}", index, size());
  return build_micro_batch(plans_[index], sequences_, masking_, MicroBatchUse::Evaluation);
}

}  // namespace plenum::data

#include "plenum/data/batches/step_batches.h"

#include <algorithm>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/batch/step_batch.h"
#include "plenum/data/batches/even_division.h"
#include "plenum/data/batches/micro_batch_builder.h"
#include "plenum/data/batches/objective_index.h"
#include "plenum/data/batches/packing_plan_file.h"
#include "plenum/describe/bert.h"
#include "plenum/packing/lpfhp.h"

namespace plenum::data {
namespace {

/// The plan that is part of the order, if packs are what is ordered.
std::optional<packing::PackingPlan> make_plan(const SequenceSource& sequences,
                                              const TrainingDataOptions& options) {
  if (options.order() != OrderUnit::Packs) return std::nullopt;
  if (!options.packing_plan.empty()) return read_packing_plan(options.packing_plan);
  // Not the optimal packer: a time limit ends its search, but a resumed run must find the same plan.
  const std::int64_t capacity = pack_capacity(sequences.histogram(), sequences.max_length());
  return packing::pack_lpfhp({.histogram = sequences.histogram(),
                              .capacity = capacity,
                              .depth = options.packing_depth.value_or(capacity)});
}

BatchOrder make_order(const SequenceSource& sequences, const TrainingDataOptions& options,
                      std::uint64_t seed) {
  const GlobalBatchSize size = options.global_batch_size();
  if (auto plan = make_plan(sequences, options)) return {sequences.histogram(), *std::move(plan), size, seed};
  return {sequences.histogram(), size, seed};
}

}  // namespace

StepBatchSource::StepBatchSource(const SequenceSource& sequences, const TrainingDataOptions& options,
                                 const describe::ModelConfig& model, std::size_t num_ranks,
                                 std::uint64_t seed, double attention_cost)
    : sequences_(sequences),
      layout_(options.layout),
      divides_micro_batches_(options.micro_batches.has_value()),
      masking_(options.masking()),
      flops_(describe::describe_bert(model)),
      num_ranks_(num_ranks),
      seed_(seed),
      attention_cost_(attention_cost),
      order_(make_order(sequences, options, seed)),
      bounds_(bounds_with({.tokens = options.micro_batch_tokens, .count = options.micro_batches})) {
  require_fit(sequences, model);
  base::require(
      sequences.task_labels() != nullptr || sequences.has_next_sentence() || !model.has_next_sentence,
      "{} has no next-sentence pairs, which the model trains; prepare the text with --objective "
      "mlm+nsp, or train without",
      sequences.name());
}

StepBounds StepBatchSource::bounds_with(std::size_t num_ranks, const MicroBatchCut& micro_batches) const {
  const std::optional<packing::PackingPlan>& plan = order_.plan();
  return bound_steps({.histogram = sequences_.histogram(),
                      .plan = plan ? &*plan : nullptr,
                      .layout = layout_,
                      .max_length = sequences_.max_length(),
                      .items_per_step = static_cast<std::int64_t>(order_.items_per_step()),
                      .num_ranks = static_cast<std::int64_t>(num_ranks),
                      .micro_batches = micro_batches,
                      .mask_rate = masking_.rate,
                      .labels_sequences = sequences_.has_next_sentence(),
                      .task = sequences_.task_labels()});
}

StepBatchSource StepBatchSource::divided(std::size_t num_ranks, const MicroBatchCut& micro_batches) const {
  StepBatchSource source = *this;
  source.num_ranks_ = num_ranks;
  source.divides_micro_batches_ = micro_batches.count.has_value();
  source.bounds_ = bounds_with(num_ranks, micro_batches);
  return source;
}

batch::Work StepBatchSource::work_of(const MicroBatchPlan& plan) const {
  batch::Work work;
  work.tokens = plan.num_rows;
  work.labels[kFirstObjective] = plan.labels;
  for (const PlacedSequence& sequence : plan.sequences)
    work.squared_lengths += sequence.length * sequence.length;
  if (sequences_.has_next_sentence())
    work.labels[kNextSentence] = static_cast<std::int64_t>(plan.sequences.size());
  return work;
}

std::vector<batch::Work> StepBatchSource::work_of(const StepArrangement& arrangement) const {
  std::vector<batch::Work> work(num_ranks_ * micro_batches_per_rank());
  for (std::size_t rank = 0; rank < num_ranks_; ++rank) {
    std::size_t id = (rank + 1) * micro_batches_per_rank();
    for (const MicroBatchPlan& plan : arrangement.micro_batches[rank]) {
      batch::Work& of_plan = work[--id];
      of_plan = work_of(plan);
      of_plan.sequences = std::ssize(plan.sequences);
      of_plan.tokens = 0;
      for (const PlacedSequence& sequence : plan.sequences) of_plan.tokens += sequence.length;
    }
  }
  return work;
}

double StepBatchSource::excess_of_busiest(std::uint64_t step, double attention_cost) const {
  double most = 0;
  double sum = 0;
  for (const std::vector<MicroBatchPlan>& of_rank : arrange(step).micro_batches) {
    batch::Work of_all;
    for (const MicroBatchPlan& plan : of_rank) {
      const batch::Work work = work_of(plan);
      of_all += work;
      if (divides_micro_batches_) most = std::max(most, cost_of(work, flops_, attention_cost));
    }
    const double cost = cost_of(of_all, flops_, attention_cost);
    if (!divides_micro_batches_) most = std::max(most, cost);
    sum += cost;
  }
  const std::size_t num_parts = divides_micro_batches_ ? num_micro_batches() : num_ranks_;
  return sum == 0 ? 0 : most * static_cast<double>(num_parts) / sum - 1;
}

std::vector<batch::StepBatch> StepBatchSource::make(std::uint64_t step) const {
  const StepArrangement arrangement = arrange(step);
  std::vector<batch::StepBatch> batches;
  for (std::size_t rank = 0; rank < num_ranks_; ++rank)
    batches.push_back(build(arrangement, base::Rank::at(rank), sequences_));
  return batches;
}

batch::StepBatch StepBatchSource::make(std::uint64_t step, base::Rank rank) const {
  return build(arrange(step), rank, sequences_);
}

StepShares StepBatchSource::share(std::uint64_t step) const {
  StepShares shares;
  shares.step = step;
  shares.epoch = step / steps_per_epoch();
  GlobalBatch batch = order_.batch(shares.epoch, step % steps_per_epoch());
  shares.sequences = measure_sequences(batch, sequences_, masking_.rate);
  for (const BatchSequence& sequence : shares.sequences) shares.global += sequence.work();
  if (layout_ == Layout::Packed && batch.pack_starts.empty())
    pack_batch(batch, shares.sequences, bounds_.item_rows);
  shares.items = cut_items(batch, shares.sequences, layout_, bounds_.item_rows);
  for (const BatchItem& item : shares.items) shares.costs.push_back(cost_of(item, flops_, attention_cost_));
  shares.items_of_rank = divide_evenly(shares.costs, num_ranks_);
  return shares;
}

StepArrangement StepBatchSource::arrange(const StepShares& shares) const {
  base::check(shares.items_of_rank.size() == num_ranks_, "a step must be shared out to as many ranks: {} {}",
              shares.items_of_rank.size(), num_ranks_);
  StepArrangement arrangement;
  arrangement.step = shares.step;
  arrangement.epoch = shares.epoch;
  arrangement.global = shares.global;
  for (const std::vector<std::size_t>& indices : shares.items_of_rank) {
    std::vector<BatchItem> items_of_rank;
    std::vector<double> costs_of_rank;
    for (const std::size_t index : indices) {
      items_of_rank.push_back(shares.items[index]);
      costs_of_rank.push_back(shares.costs[index]);
    }
    arrangement.micro_batches.push_back(
        divides_micro_batches_ ? divide_into_micro_batches(items_of_rank, costs_of_rank,
                                                           micro_batches_per_rank(), bounds_.capacity)
                               : fill_micro_batches(items_of_rank, bounds_.capacity));
    base::check(arrangement.micro_batches.back().size() <= micro_batches_per_rank(),
                "a rank must not have more micro-batches than planned: step={} planned={}", shares.step,
                micro_batches_per_rank());
    for (const MicroBatchPlan& plan : arrangement.micro_batches.back())
      arrangement.rows.push_back(plan.num_rows);
  }
  return arrangement;
}

batch::StepBatch StepBatchSource::build(const StepArrangement& arrangement, base::Rank rank,
                                        const SequenceSource& from) const {
  base::check(rank.index() < num_ranks_, "there is no such rank: rank={} ranks={}", rank.value, num_ranks_);
  const Masking masking(masking_, sequences_.vocabulary(), seed_, arrangement.epoch);
  batch::StepBatch batch{.step = arrangement.step,
                         .epoch = arrangement.epoch,
                         .global = arrangement.global,
                         .global_rows = arrangement.rows,
                         .work = work_of(arrangement),
                         .micro_batches = std::vector<batch::MicroBatch>(micro_batches_per_rank()),
                         .first_micro_batch = rank.index() * micro_batches_per_rank()};
  std::size_t index = micro_batches_per_rank();
  for (const MicroBatchPlan& plan : arrangement.micro_batches[rank.index()])
    batch.micro_batches[--index] = build_micro_batch(plan, from, masking, MicroBatchUse::Training);
  return batch;
}

}  // namespace plenum::data

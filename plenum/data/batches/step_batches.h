#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plenum/base/ids.h"
#include "plenum/batch/capacity.h"
#include "plenum/batch/step_batch.h"
#include "plenum/batch/work.h"
#include "plenum/data/batches/batch_order.h"
#include "plenum/data/batches/micro_batch_assembly.h"
#include "plenum/data/batches/step_bounds.h"
#include "plenum/data/batches/training_data_options.h"

namespace plenum::data {

/// A step before its sequences are read: who works on which.
struct StepArrangement {
  std::uint64_t step = 0;
  std::uint64_t epoch = 0;
  batch::Work global;
  std::vector<std::int64_t> rows;                          ///< of every micro-batch
  std::vector<std::vector<MicroBatchPlan>> micro_batches;  ///< of each rank
};

/// Which items of a step each rank has, however it cuts them into micro-batches.
struct StepShares {
  std::uint64_t step = 0;
  std::uint64_t epoch = 0;
  batch::Work global;
  std::vector<BatchSequence> sequences;
  std::vector<BatchItem> items;  ///< which borrow the sequences
  std::vector<double> costs;     ///< of each item
  std::vector<std::vector<std::size_t>> items_of_rank;

  StepShares() = default;
  StepShares(StepShares&&) = default;
  StepShares& operator=(StepShares&&) = default;
};

/// What every step of a training run works on: a pure function of the step, in time that does not depend on
/// it. Which sequences, and what is masked in them, depends on seed, data and `options` alone; ranks and
/// layout only arrange them. Any number of threads may ask.
///
/// A rank here is a replica of the model, however many ranks hold one. Every rank has
/// micro_batches_per_rank() micro-batches in every step: rank r those with the ids r *
/// micro_batches_per_rank() and following, as replicas have in schedules. Where a step needs
/// fewer, the first ones are empty: the last, whose backward hides the reduction of gradients, has work.
class StepBatchSource {
 public:
  /// Borrows the sequences; the options must be such as TrainingDataOptions::check accepts, whatever
  /// directory they name. Throws UserError if sequences, plan and model do not belong together (more
  /// tokens, positions or segments than the model has, no labels), or micro-batches are too small
  /// for one item.
  ///
  /// Ranks, and micro-batches of a given number, get equal shares of the operations, with those of attention
  /// counted `attention_cost` times.
  StepBatchSource(const SequenceSource& sequences, const TrainingDataOptions& options,
                  const describe::ModelConfig& model, std::size_t num_ranks, std::uint64_t seed,
                  double attention_cost = 1);

  std::uint64_t steps_per_epoch() const { return order_.steps_per_epoch(); }
  double expected_tokens_per_step() const { return order_.expected_tokens_per_step(); }
  /// At most, that ranks share out: sequences or packs.
  std::size_t items_per_step() const { return static_cast<std::size_t>(bounds_.items_per_step); }
  const SequenceSource& sequences() const { return sequences_; }
  /// By which items are packs; nothing where they are sequences.
  const std::optional<packing::PackingPlan>& packing_plan() const { return order_.plan(); }
  std::size_t num_ranks() const { return num_ranks_; }
  double attention_cost() const { return attention_cost_; }
  /// Whether their number was given, so that they are divided by cost and not filled.
  bool divides_micro_batches() const { return divides_micro_batches_; }
  std::size_t micro_batches_per_rank() const {
    return static_cast<std::size_t>(bounds_.micro_batches_per_rank);
  }
  std::size_t num_micro_batches() const { return num_ranks_ * micro_batches_per_rank(); }
  const batch::Capacity& capacity() const { return bounds_.capacity; }
  /// The fewest --micro-batch-tokens that can be asked for: a micro-batch holds any item.
  std::int64_t least_micro_batch_tokens() const { return bounds_.item_rows; }
  /// What steps would keep to with other micro-batches. Throws UserError as bound_steps() does.
  StepBounds bounds_with(const MicroBatchCut& micro_batches) const {
    return bounds_with(num_ranks_, micro_batches);
  }
  /// And with so many ranks.
  StepBounds bounds_with(std::size_t num_ranks, const MicroBatchCut& micro_batches) const;
  /// The same steps, divided among other ranks and into other micro-batches. Throws UserError likewise.
  StepBatchSource divided(std::size_t num_ranks, const MicroBatchCut& micro_batches) const;

  /// How much more than the mean the busiest rank has in a step, 0.01 for 1 %, if attention costs so much. Of
  /// the busiest micro-batch where micro-batches are divided by cost.
  double excess_of_busiest(std::uint64_t step, double attention_cost) const;
  /// Of the forward passes of a step, on all ranks together.
  double flops_of(std::uint64_t step) const { return flops_.forward(arrange(step).global); }

  /// What each rank works on. Steps count over all epochs.
  std::vector<batch::StepBatch> make(std::uint64_t step) const;
  /// What one rank works on, without reading the sequences of the others.
  batch::StepBatch make(std::uint64_t step, base::Rank rank) const;

  /// make() in two parts: who works on what, which follows from lengths alone, ...
  StepArrangement arrange(std::uint64_t step) const { return arrange(share(step)); }
  /// ... and what one rank works on, with its sequences read from where they are.
  batch::StepBatch build(const StepArrangement& arrangement, base::Rank rank,
                         const SequenceSource& from) const;
  /// The first part in two parts: what a source with any micro-batches and as many ranks has shared out ...
  StepShares share(std::uint64_t step) const;
  /// ... and how each rank cuts its share.
  StepArrangement arrange(const StepShares& shares) const;
  /// Of every micro-batch of every rank, by the schedule's ids, padding left out.
  std::vector<batch::Work> work_of(const StepArrangement& arrangement) const;

 private:
  /// Padding included.
  batch::Work work_of(const MicroBatchPlan& plan) const;

  const SequenceSource& sequences_;
  Layout layout_;
  bool divides_micro_batches_;
  MaskingOptions masking_;
  describe::Flops flops_;
  std::size_t num_ranks_;
  std::uint64_t seed_;
  double attention_cost_;
  BatchOrder order_;
  StepBounds bounds_;
};

}  // namespace plenum::data

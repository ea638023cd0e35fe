#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plenum/base/permutation.h"
#include "plenum/data/batches/step_ranges.h"
#include "plenum/packing/histogram.h"
#include "plenum/packing/plan.h"
#include "plenum/packing/virtual_packs.h"

namespace plenum::data {

/// How much a step trains on, over all ranks and micro-batches together.
struct GlobalBatchSize {
  enum class Unit { Sequences, Tokens };

  Unit unit = Unit::Sequences;
  std::uint64_t amount = 0;
};

/// The sequences of one step.
struct GlobalBatch {
  std::vector<std::uint64_t> sequence_ids;
  /// With a packing plan: where in sequence_ids each pack begins, and the end. Empty without one.
  std::vector<std::size_t> pack_starts;
};

/// The order of one epoch of a BatchOrder.
class EpochOrder {
 public:
  /// The sequences of `step`, in O(1) per sequence. step < steps_per_epoch().
  GlobalBatch batch(std::uint64_t step) const;

 private:
  friend class BatchOrder;
  EpochOrder(const StepRanges& steps, const base::KeyedPermutation& shuffle,
             std::optional<packing::VirtualPacks> packs);

  StepRanges steps_;
  base::KeyedPermutation shuffle_;
  std::optional<packing::VirtualPacks> packs_;
};

/// Which sequences each step trains on: a pure function of (seed, epoch, step), whatever the layout, the
/// micro-batches, the ranks and the schedule. Ids are those of packing::SequenceIds.
///
/// *Items.* Without a packing plan a step is a number of sequences; with one, a number of packs, whose slots
/// are drawn anew each epoch (packing::VirtualPacks). The items of an epoch are shuffled by a keyed
/// permutation, so any step is computed at once, without replaying those before it.
///
/// *Size.* Every step takes the same number of items but for the last two of an epoch (StepRanges). Where
/// items are not what the size was given in (tokens, or sequences while there is a plan) the number is the
/// amount over the mean size of an item, rounded, at least 1, and the tokens of a step vary around
/// expected_tokens_per_step(). Cutting steps at exact token counts would make each depend on all before it.
class BatchOrder {
 public:
  /// Throws UserError if there are no sequences or the batch size is 0.
  BatchOrder(packing::LengthHistogram histogram, GlobalBatchSize size, std::uint64_t seed);
  /// With a plan; throws UserError unless it packs exactly the sequences of `histogram`.
  BatchOrder(packing::LengthHistogram histogram, packing::PackingPlan plan, GlobalBatchSize size,
             std::uint64_t seed);

  /// Sequences, or packs where there is a plan.
  std::uint64_t num_items() const { return steps_.num_items(); }
  std::uint64_t items_per_step() const { return steps_.items_per_step(); }
  std::uint64_t steps_per_epoch() const { return steps_.num_steps(); }
  const StepRanges& steps() const { return steps_; }
  const std::optional<packing::PackingPlan>& plan() const { return plan_; }
  /// The mean tokens of a step of items_per_step() items.
  double expected_tokens_per_step() const;

  /// The order of one epoch, in O(plan). Borrows nothing.
  EpochOrder epoch(std::uint64_t epoch) const;
  /// epoch(epoch).batch(step): all of its cost for one step, 34 us with the 667 patterns of a million
  /// sequences, where reading and masking a step takes milliseconds.
  GlobalBatch batch(std::uint64_t epoch, std::uint64_t step) const;

 private:
  packing::LengthHistogram histogram_;
  std::optional<packing::PackingPlan> plan_;
  std::uint64_t seed_;
  StepRanges steps_;
};

}  // namespace plenum::data

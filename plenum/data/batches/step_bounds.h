#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch_cut.h"
#include "plenum/data/batches/layout.h"
#include "plenum/data/batches/task_labels.h"
#include "plenum/packing/histogram.h"
#include "plenum/packing/plan.h"

namespace plenum::data {

inline constexpr std::int64_t kDefaultMicroBatchTokens = 4096;

/// Filled up to kDefaultMicroBatchTokens, or the longest item if that is more, if nothing is said.
using batch::MicroBatchCut;

/// What is to be bounded: sequences of `histogram`, a number of order items per step.
struct StepProblem {
  const packing::LengthHistogram& histogram;
  const packing::PackingPlan* plan = nullptr;  ///< if the order is one of packs; packed needs none
  Layout layout = Layout::Unpadded;
  std::int64_t max_length = 0;
  std::int64_t items_per_step = 0;  ///< of the order: sequences, or packs with a plan
  std::int64_t num_ranks = 1;
  MicroBatchCut micro_batches = {};
  double mask_rate = 0.15;
  bool labels_sequences = false;     ///< every sequence has a label, too
  const TaskLabels* task = nullptr;  ///< what they are labelled with in place of masks
};

/// The tokens that a pack may have: those of the longest sequence that the data may have, or, for examples
/// that are laid out as several, of the longest there is.
std::int64_t pack_capacity(const packing::LengthHistogram& histogram, std::int64_t max_length);

/// What every step keeps to, whichever sequences it draws: known before training.
struct StepBounds {
  std::int64_t items_per_step = 0;  ///< BatchItems of a step at most
  std::int64_t item_rows = 0;  ///< that a BatchItem of padded or packed takes, and one of unpadded at most
  std::int64_t micro_batches_per_rank = 0;  ///< the last ones are filled, the first ones may be empty
  batch::Capacity capacity;                 ///< of a micro-batch
};

/// Throws UserError if not even one item fits into a micro-batch, or micro-batches of a given number may be
/// larger than the user allows.
///
/// *Divided* micro-batches have k = ceil(items of a rank / their number) items at most (divide_evenly), so
/// they have at most the rows and labels of the k largest items there are: close where items are packs,
/// which are all nearly full, and where sequences differ what a step of long ones needs.
///
/// *Packs of a step's own sequences* (pack_batch) of capacity c. Of two that best fit fills, the later was
/// opened by a sequence that the earlier had no room for, so any two have more than c tokens: n > 1 packs
/// have more than n c / 2. So a step with at most t tokens has at most 2 t / c of them, or one; and as many
/// as it has sequences, over those that any pack takes.
StepBounds bound_steps(const StepProblem& problem);

}  // namespace plenum::data

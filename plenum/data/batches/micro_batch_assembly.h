#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plenum/batch/capacity.h"
#include "plenum/batch/work.h"
#include "plenum/data/batches/batch_order.h"
#include "plenum/data/batches/layout.h"
#include "plenum/data/batches/sequence_source.h"
#include "plenum/describe/flops.h"

namespace plenum::data {

/// A sequence that a step trains on, or an example that is laid out as several (TaskLabels).
struct BatchSequence {
  std::uint64_t id = 0;
  std::int64_t length = 0;  ///< of all of them
  batch::LabelCounts labels = {};
  std::span<const std::int32_t> parts = {};  ///< lengths of an example's sequences; empty: it is one

  batch::Work work() const;
};

/// The sequences of a global batch, in its order, each masked at `mask_rate` or labelled for a task. Throws
/// UserError naming the source if one has not the length that its number has by the histogram. Borrows what
/// the source says of examples.
std::vector<BatchSequence> measure_sequences(const GlobalBatch& batch, const SequenceSource& source,
                                             double mask_rate);

/// Packs a global batch that its order left in sequences: best fit decreasing, into packs of at most
/// `capacity` tokens, which become the batch's. So a step trains on the same sequences in every layout,
/// where an order of packs makes steps of its own. Reorders batch and sequences alike; `capacity` is at
/// least the longest.
void pack_batch(GlobalBatch& batch, std::vector<BatchSequence>& sequences, std::int64_t capacity);

/// What is placed whole: a sequence, or the sequences of a pack.
struct BatchItem {
  std::span<const BatchSequence> sequences;
  std::int64_t num_rows = 0;       ///< that it takes up, padding included
  std::int64_t sequence_rows = 0;  ///< that each takes up, where they are padded; 0: as many as it has tokens
  std::int64_t labels = 0;         ///< of the first objective
};

/// Cuts a global batch into the items that a layout places: this is all that tells layouts apart.
/// *Padded*: sequences, each in `item_rows` rows; an example of several sequences is in as many times fewer
/// for each. *Packed*: packs, each in `item_rows` rows. *Unpadded*:
/// sequences, or packs where the order has them, in as many rows as they have tokens, at most `item_rows`.
/// Borrows the sequences.
std::vector<BatchItem> cut_items(const GlobalBatch& batch, std::span<const BatchSequence> sequences,
                                 Layout layout, std::int64_t item_rows);

/// What work costs: the operations of a forward, those of attention `attention_cost` times.
double cost_of(const batch::Work& work, const describe::Flops& flops, double attention_cost);
/// Of an item, padding included.
double cost_of(const BatchItem& item, const describe::Flops& flops, double attention_cost);

/// Where a sequence lies in a micro-batch.
struct PlacedSequence {
  std::uint64_t id = 0;
  std::int64_t start = 0;
  std::int64_t length = 0;
  std::int64_t part = 0;  ///< which it is of its example's sequences; they follow each other
};

/// Which sequences a micro-batch holds, and where.
struct MicroBatchPlan {
  std::int64_t num_rows = 0;
  std::int64_t labels = 0;  ///< of the first objective
  std::vector<PlacedSequence> sequences;
};

/// Fills micro-batches with at most capacity.rows rows and as many labels of the first objective as it has
/// room for, best fit decreasing: from the largest item to the smallest, the first of equals first, each goes
/// where the fewest rows remain that suffice, or into a new micro-batch if it fits nowhere.
///
/// *How many.* Say no item has more than r rows and m labels, and the capacity is at least k r rows and k m
/// labels. Then n items fill at most ceil(n / k) micro-batches. When one is opened, each that exists lacks
/// rows or labels for an item. If rows, more than capacity - r >= (k - 1) r of them are taken, by more than
/// k - 1 items, as none has more than r; likewise for labels. So each holds at least k items: before
/// micro-batch j + 1 is opened, j k items are placed, and one more is at hand.
std::vector<MicroBatchPlan> fill_micro_batches(std::span<const BatchItem> items,
                                               const batch::Capacity& capacity);

/// Divides items, of these costs, into so many micro-batches of nearly equal cost (divide_evenly). Where
/// there are fewer items than micro-batches, gives one for each item.
std::vector<MicroBatchPlan> divide_into_micro_batches(std::span<const BatchItem> items,
                                                      std::span<const double> costs, std::size_t count,
                                                      const batch::Capacity& capacity);

}  // namespace plenum::data

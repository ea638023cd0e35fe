#include "plenum/data/batches/micro_batch_assembly.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/batch/capacity.h"
#include "plenum/batch/work.h"
#include "plenum/data/batches/even_division.h"
#include "plenum/data/batches/objective_index.h"
#include "plenum/packing/sequence_ids.h"

namespace plenum::data {
namespace {

std::size_t num_parts(const BatchSequence& sequence) {
  return std::max<std::size_t>(sequence.parts.size(), 1);
}

std::int64_t part_length(const BatchSequence& sequence, std::size_t part) {
  return sequence.parts.empty() ? sequence.length : sequence.parts[part];
}

BatchItem make_item(std::span<const BatchSequence> sequences, Layout layout, std::int64_t item_rows) {
  BatchItem item{.sequences = sequences};
  std::int64_t tokens = 0;
  for (const BatchSequence& sequence : sequences) {
    tokens += sequence.length;
    item.labels += sequence.labels[kFirstObjective];
  }
  item.num_rows = layout == Layout::Unpadded ? tokens : item_rows;
  if (layout == Layout::Padded)
    item.sequence_rows = item_rows / static_cast<std::int64_t>(num_parts(sequences.front()));
  base::check(tokens <= item_rows,
              "an item must not have more tokens than rows are planned: tokens={} rows={}", tokens,
              item_rows);
  return item;
}

void append(const BatchItem& item, MicroBatchPlan& plan) {
  std::int64_t start = plan.num_rows;
  for (const BatchSequence& sequence : item.sequences) {
    for (std::size_t part = 0; part < num_parts(sequence); ++part) {
      const std::int64_t length = part_length(sequence, part);
      plan.sequences.push_back(
          {.id = sequence.id, .start = start, .length = length, .part = static_cast<std::int64_t>(part)});
      start += std::max(length, item.sequence_rows);
    }
  }
  plan.num_rows += item.num_rows;
  plan.labels += item.labels;
}

void require_within(const MicroBatchPlan& plan, const batch::Capacity& capacity) {
  const std::int64_t most_labels = capacity.labels[kFirstObjective];
  base::check(plan.num_rows <= capacity.rows && plan.labels <= most_labels &&
                  std::ssize(plan.sequences) <= capacity.sequences,
              "a micro-batch must keep to what is planned: rows={} of {} labels={} of {} sequences={} of {}",
              plan.num_rows, capacity.rows, plan.labels, most_labels, plan.sequences.size(),
              capacity.sequences);
}

/// Micro-batches that are being filled.
class Filling {
 public:
  explicit Filling(const batch::Capacity& capacity) : capacity_(capacity) {}

  void place(const BatchItem& item) {
    base::check(item.num_rows <= capacity_.rows && item.labels <= capacity_.labels[kFirstObjective],
                "an item must fit into a micro-batch: rows={} of {} labels={} of {}", item.num_rows,
                capacity_.rows, item.labels, capacity_.labels[kFirstObjective]);
    reopen(item.labels);
    auto tightest = by_free_rows_.lower_bound({item.num_rows, 0});
    while (tightest != by_free_rows_.end() && free_labels(tightest->second) < item.labels) {
      waiting_.emplace(free_labels(tightest->second), tightest->second);
      tightest = by_free_rows_.erase(tightest);
    }
    if (tightest != by_free_rows_.end()) {
      const std::size_t index = tightest->second;
      by_free_rows_.erase(tightest);
      put(item, index);
    } else {
      plans_.emplace_back();
      put(item, plans_.size() - 1);
    }
  }

  std::vector<MicroBatchPlan> finish() && { return std::move(plans_); }

 private:
  std::int64_t free_rows(std::size_t index) const { return capacity_.rows - plans_[index].num_rows; }
  std::int64_t free_labels(std::size_t index) const {
    return capacity_.labels[kFirstObjective] - plans_[index].labels;
  }

  /// Takes back the micro-batches that wait for an item with no more than so many labels.
  void reopen(std::int64_t labels) {
    while (!waiting_.empty() && waiting_.rbegin()->first >= labels) {
      const std::size_t index = waiting_.rbegin()->second;
      waiting_.erase(std::prev(waiting_.end()));
      by_free_rows_.emplace(free_rows(index), index);
    }
  }

  void put(const BatchItem& item, std::size_t index) {
    append(item, plans_[index]);
    require_within(plans_[index], capacity_);
    by_free_rows_.emplace(free_rows(index), index);
  }

  batch::Capacity capacity_;
  std::vector<MicroBatchPlan> plans_;
  std::set<std::pair<std::int64_t, std::size_t>> by_free_rows_;
  /// By free labels: those with rows but too few labels for an item. Left among the others, each item would
  /// pass over all of them; so each is moved aside, for most once, as smaller items have fewer labels.
  std::set<std::pair<std::int64_t, std::size_t>> waiting_;
};

}  // namespace

batch::Work BatchSequence::work() const {
  batch::Work work{
      .tokens = length, .sequences = static_cast<std::int64_t>(num_parts(*this)), .labels = labels};
  for (std::size_t part = 0; part < num_parts(*this); ++part)
    work.squared_lengths += part_length(*this, part) * part_length(*this, part);
  return work;
}

std::vector<BatchSequence> measure_sequences(const GlobalBatch& batch, const SequenceSource& source,
                                             double mask_rate) {
  std::vector<BatchSequence> sequences;
  sequences.reserve(batch.sequence_ids.size());
  const packing::SequenceIds ids(source.histogram());
  for (const std::uint64_t id : batch.sequence_ids) {
    const std::int64_t length = source.length(id);
    // Memory, packs and counts are planned by the histogram.
    base::require(
        length == ids.length_of(id),
        "{} is damaged: sequence {} has {} tokens where the histogram has {}; prepare the dataset again",
        source.name(), id, length, ids.length_of(id));
    BatchSequence& sequence = sequences.emplace_back(BatchSequence{.id = id, .length = length});
    if (const TaskLabels* labels = source.task_labels()) {
      sequence.labels[kTask] = labels->num_labels(id);
      if (labels->sequences_per_example() > 1) sequence.parts = labels->sequence_lengths(id);
      continue;
    }
    sequence.labels[kMaskedTokens] = masked_count(length, mask_rate);
    if (source.has_next_sentence()) sequence.labels[kNextSentence] = 1;
  }
  return sequences;
}

void pack_batch(GlobalBatch& batch, std::vector<BatchSequence>& sequences, std::int64_t capacity) {
  std::vector<std::size_t> longest_first(sequences.size());
  std::iota(longest_first.begin(), longest_first.end(), std::size_t{0});
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](std::size_t a, std::size_t b) { return sequences[a].length > sequences[b].length; });
  std::vector<std::vector<std::size_t>> packs;
  std::set<std::pair<std::int64_t, std::size_t>> by_free_tokens;
  for (const std::size_t index : longest_first) {
    const std::int64_t length = sequences[index].length;
    auto tightest = by_free_tokens.lower_bound({length, 0});
    std::pair<std::int64_t, std::size_t> pack{capacity, packs.size()};
    if (tightest != by_free_tokens.end()) {
      pack = *tightest;
      by_free_tokens.erase(tightest);
    } else {
      packs.emplace_back();
    }
    packs[pack.second].push_back(index);
    by_free_tokens.emplace(pack.first - length, pack.second);
  }
  const std::vector<BatchSequence> unordered = std::exchange(sequences, {});
  batch.sequence_ids.clear();
  batch.pack_starts.clear();
  for (const std::vector<std::size_t>& pack : packs) {
    batch.pack_starts.push_back(sequences.size());
    for (const std::size_t index : pack) {
      sequences.push_back(unordered[index]);
      batch.sequence_ids.push_back(unordered[index].id);
    }
  }
  batch.pack_starts.push_back(sequences.size());
}

std::vector<BatchItem> cut_items(const GlobalBatch& batch, std::span<const BatchSequence> sequences,
                                 Layout layout, std::int64_t item_rows) {
  std::vector<BatchItem> items;
  const auto add = [&](std::size_t begin, std::size_t end) {
    items.push_back(make_item(sequences.subspan(begin, end - begin), layout, item_rows));
  };
  if (layout == Layout::Padded || batch.pack_starts.empty()) {
    for (std::size_t i = 0; i < sequences.size(); ++i) add(i, i + 1);
  } else {
    for (std::size_t p = 0; p + 1 < batch.pack_starts.size(); ++p)
      add(batch.pack_starts[p], batch.pack_starts[p + 1]);
  }
  return items;
}

double cost_of(const batch::Work& work, const describe::Flops& flops, double attention_cost) {
  return flops.forward(work) +
         (attention_cost - 1) * flops.forward({.squared_lengths = work.squared_lengths});
}

double cost_of(const BatchItem& item, const describe::Flops& flops, double attention_cost) {
  batch::Work work;
  for (const BatchSequence& sequence : item.sequences) work += sequence.work();
  work.tokens = item.num_rows;
  return cost_of(work, flops, attention_cost);
}

std::vector<MicroBatchPlan> fill_micro_batches(std::span<const BatchItem> items,
                                               const batch::Capacity& capacity) {
  std::vector<BatchItem> largest_first(items.begin(), items.end());
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const BatchItem& a, const BatchItem& b) { return a.num_rows > b.num_rows; });
  Filling filling(capacity);
  for (const BatchItem& item : largest_first) filling.place(item);
  return std::move(filling).finish();
}

std::vector<MicroBatchPlan> divide_into_micro_batches(std::span<const BatchItem> items,
                                                      std::span<const double> costs, std::size_t count,
                                                      const batch::Capacity& capacity) {
  std::vector<MicroBatchPlan> plans;
  for (const std::vector<std::size_t>& indices : divide_evenly(costs, count)) {
    if (indices.empty()) break;
    MicroBatchPlan& plan = plans.emplace_back();
    for (const std::size_t index : indices) append(items[index], plan);
    require_within(plan, capacity);
  }
  return plans;
}

}  // namespace plenum::data

#include "plenum/data/batches/micro_batch_builder.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "plenum/base/check.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/data/batches/objective_index.h"

namespace plenum::data {
namespace {

/// Buffers of one sequence, used over and over.
struct SequenceText {
  std::vector<TokenId> ids;
  std::vector<std::uint8_t> segments;
  std::vector<std::int32_t> masked_positions;
  std::vector<TokenId> labels;

  void clear() {
    ids.clear();
    segments.clear();
    masked_positions.clear();
    labels.clear();
  }
};

void require_tokens(const SequenceText& text, const PlacedSequence& placed, const SequenceSource& source) {
  base::check(static_cast<std::int64_t>(text.ids.size()) == placed.length,
              "a sequence must have its length: id={} length={} tokens={}", placed.id, placed.length,
              text.ids.size());
  for (const TokenId id : text.ids) {
    base::require(id >= 0 && id < source.vocabulary().size,
                  "{} is damaged: sequence {} has token {}, but the vocabulary has {}; prepare it again",
                  source.name(), placed.id, id, source.vocabulary().size);
  }
  // A model without the objective may know one segment only.
  base::require(source.has_next_sentence() || std::ranges::all_of(text.segments, std::logical_not<>()),
                "{} is damaged: sequence {} is a pair, but the dataset has none; prepare it again",
                source.name(), placed.id);
}

void add_sequence(const SequenceText& text, const PlacedSequence& placed, batch::MicroBatch& batch) {
  const auto start = static_cast<std::ptrdiff_t>(placed.start);
  const auto length = static_cast<std::ptrdiff_t>(placed.length);
  std::copy(text.ids.begin(), text.ids.end(), batch.ids.begin() + start);
  std::copy(text.segments.begin(), text.segments.end(), batch.segments.begin() + start);
  std::iota(batch.positions.begin() + start, batch.positions.begin() + start + length, 0);
  std::fill_n(batch.row_samples.begin() + start, length, static_cast<std::int64_t>(placed.id));
  batch.starts.push_back(static_cast<std::int32_t>(placed.start));
  batch.lengths.push_back(static_cast<std::int32_t>(placed.length));
  batch.samples.push_back(static_cast<std::int64_t>(placed.id));
  batch::ObjectiveRows& masked = batch.objectives[kMaskedTokens];
  for (const std::int32_t position : text.masked_positions)
    masked.rows.push_back(batch.starts.back() + position);
  masked.labels.insert(masked.labels.end(), text.labels.begin(), text.labels.end());
}

/// Groups the rows of sequences by the entry that each reads, by counting.
batch::GroupedRows group_rows(const batch::MicroBatch& batch, const std::vector<std::int32_t>& entry_of_row) {
  const auto visit_rows = [&](auto visit) {
    for (std::size_t s = 0; s < batch.starts.size(); ++s) {
      for (std::int32_t row = batch.starts[s]; row < batch.starts[s] + batch.lengths[s]; ++row)
        visit(row, static_cast<std::size_t>(entry_of_row[static_cast<std::size_t>(row)]));
    }
  };
  if (entry_of_row.empty()) return {};
  const std::int32_t greatest = *std::max_element(entry_of_row.begin(), entry_of_row.end());
  std::vector<std::int32_t> counts(static_cast<std::size_t>(greatest) + 1);
  visit_rows([&](std::int32_t, std::size_t entry) { ++counts[entry]; });

  batch::GroupedRows groups;
  std::vector<std::int32_t>& next = counts;  // where the next row of an entry goes
  std::int32_t end = 0;
  for (std::size_t entry = 0; entry < counts.size(); ++entry) {
    const std::int32_t count = counts[entry];
    if (count == 0) continue;
    groups.entries.push_back(static_cast<std::int32_t>(entry));
    groups.starts.push_back(end);
    next[entry] = end;
    end += count;
  }
  groups.starts.push_back(end);
  groups.rows.resize(static_cast<std::size_t>(end));
  visit_rows([&](std::int32_t row, std::size_t entry) {
    groups.rows[static_cast<std::size_t>(next[entry]++)] = row;
  });
  return groups;
}

}  // namespace

batch::MicroBatch build_micro_batch(const MicroBatchPlan& plan, const SequenceSource& source,
                                    const Masking& masking, MicroBatchUse use) {
  batch::MicroBatch batch;
  batch.num_rows = plan.num_rows;
  const auto num_rows = static_cast<std::size_t>(plan.num_rows);
  batch.ids.resize(num_rows);
  batch.segments.resize(num_rows);
  batch.positions.resize(num_rows);
  batch.row_samples.resize(num_rows);
  batch.objectives.resize(source.has_next_sentence() ? 2 : 1);
  SequenceText text;
  for (const PlacedSequence& placed : plan.sequences) {
    text.clear();
    source.append(placed.id, text.ids, text.segments);
    require_tokens(text, placed, source);
    masking.mask(placed.id, text.ids, text.segments, text.masked_positions, text.labels);
    add_sequence(text, placed, batch);
    if (source.has_next_sentence()) {
      batch::ObjectiveRows& pairs = batch.objectives[kNextSentence];
      pairs.rows.push_back(batch.starts.back());
      pairs.labels.push_back(source.is_random_next(placed.id) ? 1 : 0);
    }
  }
  if (use == MicroBatchUse::Training) {
    batch.by_word = group_rows(batch, batch.ids);
    batch.by_position = group_rows(batch, batch.positions);
    batch.by_segment = group_rows(batch, batch.segments);
  }
  return batch;
}

}  // namespace plenum::data

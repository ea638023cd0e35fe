#include "plenum/data/batches/micro_batch_builder.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/data/batches/objective_index.h"

namespace plenum::data {
namespace {

/// Buffers of one sequence, or of an example that is laid out as several, used over and over.
struct SequenceText {
  std::vector<TokenId> ids;
  std::vector<std::uint8_t> segments;
  std::vector<std::int32_t> label_positions;  ///< of the first objective
  std::vector<TokenId> labels;
  std::size_t placed_tokens = 0;  ///< in sequences that have their rows
  std::size_t placed_labels = 0;

  void clear() {
    ids.clear();
    segments.clear();
    label_positions.clear();
    labels.clear();
    placed_tokens = 0;
    placed_labels = 0;
  }
};

void require_tokens(const SequenceText& text, const PlacedSequence& placed, const SequenceSource& source) {
  const std::int64_t length = source.length(placed.id);
  base::check(static_cast<std::int64_t>(text.ids.size()) == length,
              "a sequence must have its length: id={} length={} tokens={}", placed.id, length,
              text.ids.size());
  for (const TokenId id : text.ids) {
    base::require(id >= 0 && id < source.vocabulary().size,
                  "{} is damaged: sequence {} has token {}, but the vocabulary has {}; prepare it again",
                  source.name(), placed.id, id, source.vocabulary().size);
  }
  // A model without the objective may know one segment only.
  base::require(source.has_pairs() || std::ranges::all_of(text.segments, std::logical_not<>()),
                "{} is damaged: sequence {} is a pair, but the dataset has none; prepare it again",
                source.name(), placed.id);
}

/// Gives the next sequence of the text its rows.
void add_sequence(SequenceText& text, const PlacedSequence& placed, std::int64_t sample,
                  batch::MicroBatch& batch) {
  const auto start = static_cast<std::ptrdiff_t>(placed.start);
  const auto length = static_cast<std::ptrdiff_t>(placed.length);
  const auto first = static_cast<std::ptrdiff_t>(text.placed_tokens);
  std::copy_n(text.ids.begin() + first, length, batch.ids.begin() + start);
  std::copy_n(text.segments.begin() + first, length, batch.segments.begin() + start);
  std::iota(batch.positions.begin() + start, batch.positions.begin() + start + length, 0);
  std::fill_n(batch.row_samples.begin() + start, length, sample);
  batch.starts.push_back(static_cast<std::int32_t>(placed.start));
  batch.lengths.push_back(static_cast<std::int32_t>(placed.length));
  batch.samples.push_back(sample);
  text.placed_tokens += static_cast<std::size_t>(placed.length);
  batch::ObjectiveRows& objective = batch.objectives[kFirstObjective];
  for (; text.placed_labels < text.labels.size(); ++text.placed_labels) {
    const std::ptrdiff_t position = text.label_positions[text.placed_labels];
    if (std::cmp_greater_equal(position, text.placed_tokens)) break;
    objective.rows.push_back(static_cast<std::int32_t>(start + position - first));
    objective.labels.push_back(text.labels[text.placed_labels]);
  }
}

void read_text(const PlacedSequence& placed, const SequenceSource& source, const Masking& masking,
               SequenceText& text) {
  text.clear();
  source.append(placed.id, text.ids, text.segments);
  require_tokens(text, placed, source);
  if (const TaskLabels* labels = source.task_labels()) {
    labels->append_labels(placed.id, text.label_positions, text.labels);
  } else {
    masking.mask(placed.id, text.ids, text.segments, text.label_positions, text.labels);
  }
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
  const TaskLabels* const labels = source.task_labels();
  const auto parts = static_cast<std::uint64_t>(labels != nullptr ? labels->sequences_per_example() : 1);
  SequenceText text;
  for (const PlacedSequence& placed : plan.sequences) {
    if (placed.part == 0) read_text(placed, source, masking, text);
    const std::uint64_t sample = placed.id * parts + static_cast<std::uint64_t>(placed.part);
    add_sequence(text, placed, static_cast<std::int64_t>(sample), batch);
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

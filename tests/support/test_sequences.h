#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "plenum/base/philox.h"
#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"

namespace plenum::test {

/// A sequence after masking, wherever it will lie.
struct TestSequence {
  std::int64_t sample = 0;
  std::vector<std::int32_t> ids = {};
  std::vector<std::int32_t> segments = {};
  std::vector<std::int32_t> masked_positions = {};  ///< increasing
  std::vector<std::int32_t> masked_labels = {};
  std::int32_t next_sentence_label = 0;
};

/// Sequences of 1 to max_length tokens, the first of max_length, with a quarter of them masked.
inline std::vector<TestSequence> random_sequences(std::size_t count, std::int32_t max_length,
                                                  std::int32_t vocabulary, std::uint64_t seed) {
  const base::RandomFunction random(seed, base::Purpose::MaskPositions);
  std::vector<TestSequence> sequences;
  for (std::size_t i = 0; i < count; ++i) {
    TestSequence& sequence = sequences.emplace_back();
    sequence.sample = static_cast<std::int64_t>(1000 + 7 * i);
    const auto draw = [&](std::int32_t position, std::uint32_t channel, std::int32_t bound) {
      return static_cast<std::int32_t>(base::to_range(
          random(i, static_cast<std::uint32_t>(position), 0, channel), static_cast<std::uint64_t>(bound)));
    };
    const std::int32_t length = i == 0 ? max_length : 1 + draw(0, 0, max_length);
    for (std::int32_t position = 0; position < length; ++position) {
      sequence.ids.push_back(1 + draw(position, 1, vocabulary - 1));
      sequence.segments.push_back(position > length / 2 ? 1 : 0);
      if (position > 0 && draw(position, 2, 4) > 0) continue;
      sequence.masked_positions.push_back(position);
      sequence.masked_labels.push_back(1 + draw(position, 3, vocabulary - 1));
    }
    sequence.next_sentence_label = draw(0, 4, 2);
  }
  return sequences;
}

inline batch::GroupedRows group_rows(const std::vector<std::int32_t>& entries,
                                     const std::vector<std::int32_t>& rows) {
  std::map<std::int32_t, std::vector<std::int32_t>> groups;
  for (const std::int32_t row : rows) groups[entries[static_cast<std::size_t>(row)]].push_back(row);
  batch::GroupedRows grouped;
  for (const auto& [entry, members] : groups) {
    grouped.entries.push_back(entry);
    grouped.starts.push_back(static_cast<std::int32_t>(grouped.rows.size()));
    grouped.rows.insert(grouped.rows.end(), members.begin(), members.end());
  }
  grouped.starts.push_back(static_cast<std::int32_t>(grouped.rows.size()));
  return grouped;
}

/// Lays sequences end to end, or with `row_length` so many of them at the beginning of a row of that length.
inline batch::MicroBatch lay_out(std::span<const TestSequence> sequences, std::int64_t row_length = 0,
                                 std::size_t sequences_of_row = 1) {
  batch::MicroBatch batch;
  batch.objectives.resize(2);  // masked tokens, next sentence
  std::vector<std::int32_t> real_rows;
  for (const TestSequence& sequence : sequences) {
    const auto length = static_cast<std::int64_t>(sequence.ids.size());
    const auto start = static_cast<std::int32_t>(batch.num_rows);
    batch.num_rows += length;
    const std::size_t num_placed = batch.starts.size() + 1;
    if (row_length > 0 && (num_placed % sequences_of_row == 0 || num_placed == sequences.size()))
      batch.num_rows = (start / row_length + 1) * row_length;
    const auto size = static_cast<std::size_t>(batch.num_rows);
    for (std::int32_t i = 0; i < length; ++i) {
      batch.positions.push_back(i);
      real_rows.push_back(start + i);
    }
    batch.ids.insert(batch.ids.end(), sequence.ids.begin(), sequence.ids.end());
    batch.segments.insert(batch.segments.end(), sequence.segments.begin(), sequence.segments.end());
    batch.ids.resize(size, 0);
    batch.segments.resize(size, 0);
    batch.positions.resize(size, 0);
    batch.row_samples.resize(size, sequence.sample);
    batch.starts.push_back(start);
    batch.lengths.push_back(static_cast<std::int32_t>(length));
    batch.samples.push_back(sequence.sample);
    batch.objectives[1].rows.push_back(start);
    batch.objectives[1].labels.push_back(sequence.next_sentence_label);
    for (const std::int32_t position : sequence.masked_positions) {
      batch.objectives[0].rows.push_back(start + position);
    }
    batch.objectives[0].labels.insert(batch.objectives[0].labels.end(), sequence.masked_labels.begin(),
                                      sequence.masked_labels.end());
  }
  batch.by_word = group_rows(batch.ids, real_rows);
  batch.by_position = group_rows(batch.positions, real_rows);
  batch.by_segment = group_rows(batch.segments, real_rows);
  return batch;
}

/// As large as any of the micro-batches.
inline batch::Capacity capacity_of(std::span<const batch::MicroBatch> batches) {
  batch::Capacity capacity;
  for (const batch::MicroBatch& batch : batches) {
    capacity.rows = std::max(capacity.rows, batch.num_rows);
    capacity.sequences = std::max(capacity.sequences, static_cast<std::int64_t>(batch.starts.size()));
    const batch::LabelCounts labels = batch.work().labels;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      capacity.labels[i] = std::max(capacity.labels[i], labels[i]);
    }
    for (const std::int32_t length : batch.lengths) {
      capacity.max_length = std::max<std::int64_t>(capacity.max_length, length);
    }
  }
  return capacity;
}
inline batch::Capacity capacity_of(const batch::MicroBatch& batch) {
  return capacity_of(std::span(&batch, 1));
}

}  // namespace plenum::test

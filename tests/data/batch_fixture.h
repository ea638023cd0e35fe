#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "plenum/base/philox.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/batch/step_batch.h"
#include "plenum/data/batches/step_batches.h"

#include "tests/support/synthetic_sequences.h"

namespace plenum::data {

inline constexpr std::int64_t kTestVocabulary = 101;

/// A model that goes with synthetic sequences of up to `max_length` tokens.
inline describe::ModelConfig small_model(std::int64_t max_length = 64) {
  describe::ModelConfig model = describe::preset("bert-tiny");
  model.vocabulary = kTestVocabulary;
  model.max_positions = max_length;
  return model;
}

/// Lengths from 3 to max_length, a function of `index`; every third has only a few lengths.
inline packing::LengthHistogram random_lengths(std::uint64_t index, std::int64_t max_length) {
  const base::RandomFunction random(11, base::Purpose::Holdout);
  packing::LengthHistogram histogram;
  histogram.counts.assign(static_cast<std::size_t>(max_length) + 1, 0);
  for (std::int64_t length = 3; length <= max_length; ++length) {
    const base::PhiloxCounter bits = random(index, static_cast<std::uint32_t>(length));
    const bool occurs = index % 3 != 0 || bits[2] % 8 == 0;
    if (occurs) histogram.counts[static_cast<std::size_t>(length)] = base::to_range(bits, 9);
  }
  ++histogram.counts.back();
  return histogram;
}

inline test::SyntheticSequences synthetic(packing::LengthHistogram histogram,
                                          bool has_next_sentence = false) {
  return {std::move(histogram), {.vocabulary = kTestVocabulary, .has_next_sentence = has_next_sentence}, 3};
}

/// A sequence as a micro-batch holds it.
struct SeenSequence {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> segments;
  std::vector<std::int32_t> masked_positions;
  std::vector<std::int32_t> labels;
  std::int32_t next_sentence = -1;

  friend bool operator==(const SeenSequence&, const SeenSequence&) = default;
};

/// Adds the sequences of a micro-batch by sample; a sample that comes twice makes its ids longer, and so
/// unequal to anything.
inline void collect(const batch::MicroBatch& batch, std::map<std::int64_t, SeenSequence>& seen) {
  std::size_t m = 0;
  for (std::size_t s = 0; s < batch.starts.size(); ++s) {
    SeenSequence& sequence = seen[batch.samples[s]];
    const std::int32_t end = batch.starts[s] + batch.lengths[s];
    for (auto row = static_cast<std::size_t>(batch.starts[s]); row < static_cast<std::size_t>(end); ++row) {
      sequence.ids.push_back(batch.ids[row]);
      sequence.segments.push_back(batch.segments[row]);
    }
    for (; m < batch.objective(0).rows.size() && batch.objective(0).rows[m] < end; ++m) {
      sequence.masked_positions.push_back(batch.objective(0).rows[m] - batch.starts[s]);
      sequence.labels.push_back(batch.objective(0).labels[m]);
    }
    if (batch.objectives.size() > 1) sequence.next_sentence = batch.objective(1).labels[s];
  }
}

inline std::map<std::int64_t, SeenSequence> collect(const std::vector<batch::StepBatch>& ranks) {
  std::map<std::int64_t, SeenSequence> seen;
  for (const batch::StepBatch& batch : ranks) {
    for (const batch::MicroBatch& micro_batch : batch.micro_batches) collect(micro_batch, seen);
  }
  return seen;
}

}  // namespace plenum::data

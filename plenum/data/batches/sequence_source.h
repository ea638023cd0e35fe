#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plenum/data/batches/masking.h"
#include "plenum/data/batches/task_labels.h"
#include "plenum/describe/model_config.h"
#include "plenum/packing/histogram.h"

namespace plenum::data {

/// Sequences to train on or to evaluate with, from a dataset or made up. Numbered from 0 in order of
/// increasing length, as packing::SequenceIds does. Any number of threads may read one.
///
/// They are for pre-training, or labelled for a task: see TaskLabels for what an id is then.
class SequenceSource {
 public:
  virtual ~SequenceSource() = default;

  virtual const packing::LengthHistogram& histogram() const = 0;
  /// That a sequence may have, special tokens included.
  virtual std::int64_t max_length() const = 0;
  virtual const MaskingVocabulary& vocabulary() const = 0;
  /// Whether every sequence is labelled with whether its second segment follows its first.
  virtual bool has_next_sentence() const = 0;

  /// In tokens, special tokens included.
  virtual std::int64_t length(std::uint64_t id) const = 0;
  /// Appends length(id) tokens and as many segment numbers.
  virtual void append(std::uint64_t id, std::vector<TokenId>& tokens,
                      std::vector<std::uint8_t>& segments) const = 0;
  /// Whether the second segment comes from elsewhere. Only where has_next_sentence().
  virtual bool is_random_next(std::uint64_t id) const = 0;

  /// What is to be learned of them; null: to tell masked tokens, and whether segments follow each other.
  virtual const TaskLabels* task_labels() const { return nullptr; }
  /// Whether sequences may have a second segment.
  virtual bool has_pairs() const { return has_next_sentence(); }

  /// Where the sequences come from, for messages.
  virtual std::string name() const = 0;
};

/// Throws UserError unless a model can read the sequences: embeddings, positions and segments for all of
/// them, and a head for what they are labelled with. It may have more embeddings than there are tokens: many
/// are padded to a round number.
void require_fit(const SequenceSource& sequences, const describe::ModelConfig& model);

}  // namespace plenum::data

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plenum/data/batches/sequence_source.h"
#include "plenum/data/tasks/encoded_examples.h"
#include "plenum/data/tasks/task_examples.h"
#include "plenum/data/tokenizer/tokenizer.h"
#include "plenum/packing/sequence_ids.h"

namespace plenum::data {

/// The examples of a task as sequences of tokens, in memory, numbered in order of increasing length; of the
/// same length, in the order of the file.
class TaskSequences final : public SequenceSource, private TaskLabels {
 public:
  /// Borrows the examples. Throws UserError naming file and line of an example that sequences of at most
  /// `max_length` tokens cannot hold and that is neither truncated nor read in windows.
  TaskSequences(const TaskExamples& examples, const Tokenizer& tokenizer, std::int64_t max_length,
                const TaskOptions& options);

  const packing::LengthHistogram& histogram() const override { return histogram_; }
  std::int64_t max_length() const override { return max_length_; }
  const MaskingVocabulary& vocabulary() const override { return vocabulary_; }
  bool has_next_sentence() const override { return false; }
  std::int64_t length(std::uint64_t id) const override;
  void append(std::uint64_t id, std::vector<TokenId>& tokens,
              std::vector<std::uint8_t>& segments) const override;
  bool is_random_next(std::uint64_t id) const override;
  const TaskLabels* task_labels() const override { return this; }
  bool has_pairs() const override { return examples_.has_pairs; }
  std::string name() const override { return examples_.path; }

  const TaskExamples& examples() const { return examples_; }
  std::uint64_t num_sequences() const { return order_.size(); }
  /// What was laid out as the source's `id`.
  const EncodedSequence& sequence(std::uint64_t id) const { return encoded_.sequences[order_[id]]; }
  /// Tokens, offsets and words, which sequences say where to find.
  const EncodedExamples& encoded() const { return encoded_; }

  /// Of everything that training reads of it and is scored by: a resumed run must find the same.
  std::uint64_t fingerprint() const;
  /// What was truncated or cut into windows, one line each, for people.
  std::vector<std::string> remarks() const;

 private:
  const describe::Task& task() const override { return examples_.task; }
  std::int64_t sequences_per_example() const override { return encoded_.parts_per_sequence; }
  std::span<const std::int32_t> sequence_lengths(std::uint64_t id) const override;
  std::int64_t longest_sequence() const override { return longest_sequence_; }
  std::int64_t num_labels(std::uint64_t id) const override;
  std::int64_t most_labels(std::int64_t length) const override;
  void append_labels(std::uint64_t id, std::vector<std::int32_t>& positions,
                     std::vector<std::int32_t>& labels) const override;

  const TaskExamples& examples_;
  MaskingVocabulary vocabulary_;
  std::int64_t max_length_;
  EncodedExamples encoded_;
  std::vector<std::size_t> order_;  ///< by id: which of the encoded
  packing::LengthHistogram histogram_;
  std::int64_t longest_sequence_ = 0;
  std::vector<std::int64_t> most_labels_;  ///< by length
};

}  // namespace plenum::data

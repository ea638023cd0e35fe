#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plenum/data/batches/sequence_source.h"
#include "plenum/packing/sequence_ids.h"

namespace plenum::data {

/// Sequences of which nothing is known but their lengths: enough to arrange steps, not to make them.
class HistogramSequences final : public SequenceSource {
 public:
  /// Throws UserError if there are none, or one is longer than `max_length`. `name` stands in messages.
  HistogramSequences(packing::LengthHistogram histogram, std::int64_t max_length, bool has_next_sentence,
                     std::string name);

  const packing::LengthHistogram& histogram() const override { return histogram_; }
  std::int64_t max_length() const override { return max_length_; }
  const MaskingVocabulary& vocabulary() const override { return vocabulary_; }
  bool has_next_sentence() const override { return has_next_sentence_; }
  std::int64_t length(std::uint64_t id) const override { return ids_.length_of(id); }
  // Throw InternalError: there is nothing to read.
  void append(std::uint64_t id, std::vector<TokenId>& tokens,
              std::vector<std::uint8_t>& segments) const override;
  bool is_random_next(std::uint64_t id) const override;
  std::string name() const override { return name_; }

 private:
  packing::LengthHistogram histogram_;
  packing::SequenceIds ids_;
  std::int64_t max_length_;
  bool has_next_sentence_;
  std::string name_;
  MaskingVocabulary vocabulary_;
};

}  // namespace plenum::data

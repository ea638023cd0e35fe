#pragma once

#include "plenum/data/batches/sequence_source.h"
#include "plenum/packing/sequence_ids.h"

namespace plenum::data {

/// What synthetic sequences look like.
struct SyntheticText {
  std::int64_t vocabulary = 30522;  ///< with the special tokens, which come first
  bool has_next_sentence = false;   ///< sequences of five tokens and more are pairs
};

/// Sequences of given lengths with random tokens, for benchmarks and tests: a pure function of seed and id.
/// Nothing is stored. Every fourth token that is not special continues a word.
class SyntheticSequences final : public SequenceSource {
 public:
  /// Throws UserError if a sequence is shorter than three tokens.
  SyntheticSequences(packing::LengthHistogram histogram, const SyntheticText& text, std::uint64_t seed);

  const packing::LengthHistogram& histogram() const override { return histogram_; }
  std::int64_t max_length() const override { return histogram_.longest(); }
  const MaskingVocabulary& vocabulary() const override { return vocabulary_; }
  bool has_next_sentence() const override { return has_next_sentence_; }
  std::int64_t length(std::uint64_t id) const override { return ids_.length_of(id); }
  void append(std::uint64_t id, std::vector<TokenId>& tokens,
              std::vector<std::uint8_t>& segments) const override;
  bool is_random_next(std::uint64_t id) const override;
  std::string name() const override { return "synthetic sequences"; }

 private:
  packing::LengthHistogram histogram_;
  packing::SequenceIds ids_;
  MaskingVocabulary vocabulary_;
  bool has_next_sentence_;
  base::RandomFunction random_;
};

}  // namespace plenum::data

#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/base/philox.h"
#include "plenum/data/batches/sequence_source.h"
#include "plenum/packing/sequence_ids.h"

namespace plenum::test {

/// What synthetic sequences look like.
struct SyntheticText {
  std::int64_t vocabulary = 30522;  ///< with the special tokens, which come first
  bool has_next_sentence = false;   ///< sequences of five tokens and more are pairs
};

/// Sequences of given lengths with random tokens, for tests and benchmarks: a pure function of seed and id.
/// Nothing is stored. Every fourth token that is not special continues a word.
class SyntheticSequences final : public data::SequenceSource {
 public:
  /// Throws UserError if a sequence is shorter than three tokens.
  SyntheticSequences(packing::LengthHistogram histogram, const SyntheticText& text, std::uint64_t seed)
      : histogram_(std::move(histogram)),
        ids_(histogram_),
        vocabulary_(numbered_vocabulary(text.vocabulary)),
        has_next_sentence_(text.has_next_sentence),
        random_(seed, base::Purpose::SyntheticText) {
    base::require(ids_.num_sequences() == 0 || ids_.length_of(0) >= 3,
                  "a sequence has at least three tokens: {}",
                  ids_.num_sequences() == 0 ? 0 : ids_.length_of(0));
  }

  const packing::LengthHistogram& histogram() const override { return histogram_; }
  std::int64_t max_length() const override { return histogram_.longest(); }
  const data::MaskingVocabulary& vocabulary() const override { return vocabulary_; }
  bool has_next_sentence() const override { return has_next_sentence_; }
  std::int64_t length(std::uint64_t id) const override { return ids_.length_of(id); }
  void append(std::uint64_t id, std::vector<data::TokenId>& tokens,
              std::vector<std::uint8_t>& segments) const override {
    const std::int64_t length = this->length(id);
    const bool is_pair = has_next_sentence_ && length >= kShortestPair;
    const std::int64_t end_of_a = is_pair ? length / 2 : length - 1;
    const auto num_words = static_cast<std::uint64_t>(vocabulary_.size - kNumSpecial);
    for (std::int64_t i = 0; i < length; ++i) {
      const base::PhiloxCounter bits = random_(id, static_cast<std::uint32_t>(i));
      data::TokenId token = kNumSpecial + static_cast<data::TokenId>(base::to_range(bits, num_words));
      if (i == 0) token = vocabulary_.special.cls;
      if (i == end_of_a || i == length - 1) token = vocabulary_.special.sep;
      tokens.push_back(token);
      segments.push_back(i > end_of_a ? 1 : 0);
    }
  }
  bool is_random_next(std::uint64_t id) const override { return (random_(id, 0, 0, 1)[0] & 1) != 0; }
  std::string name() const override { return "synthetic sequences"; }

 private:
  static constexpr data::TokenId kNumSpecial = std::size(data::kSpecialTokens);
  static constexpr std::int64_t kShortestPair = 5;

  static data::MaskingVocabulary numbered_vocabulary(std::int64_t size) {
    base::check(size > kNumSpecial, "a vocabulary must have more than special tokens: size={}", size);
    data::MaskingVocabulary vocabulary;
    vocabulary.size = size;
    vocabulary.special = {.pad = 0, .unknown = 1, .cls = 2, .sep = 3, .mask = 4};
    for (data::TokenId id = 0; id < size; ++id)
      vocabulary.continues.push_back(id >= kNumSpecial && id % 4 == 0);
    return vocabulary;
  }

  packing::LengthHistogram histogram_;
  packing::SequenceIds ids_;
  data::MaskingVocabulary vocabulary_;
  bool has_next_sentence_;
  base::RandomFunction random_;
};

}  // namespace plenum::test

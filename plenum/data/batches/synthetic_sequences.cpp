#include "plenum/data/batches/synthetic_sequences.h"

#include <utility>

#include "plenum/base/check.h"

namespace plenum::data {
namespace {

constexpr TokenId kNumSpecial = std::size(kSpecialTokens);
constexpr std::int64_t kShortestPair = 5;

MaskingVocabulary numbered_vocabulary(std::int64_t size) {
  base::check(size > kNumSpecial, "a vocabulary must have more than special tokens: size={}", size);
  MaskingVocabulary vocabulary;
  vocabulary.size = size;
  vocabulary.special = {.pad = 0, .unknown = 1, .cls = 2, .sep = 3, .mask = 4};
  for (TokenId id = 0; id < size; ++id) vocabulary.continues.push_back(id >= kNumSpecial && id % 4 == 0);
  return vocabulary;
}

}  // namespace

SyntheticSequences::SyntheticSequences(packing::LengthHistogram histogram, const SyntheticText& text,
                                       std::uint64_t seed)
    : histogram_(std::move(histogram)),
      ids_(histogram_),
      vocabulary_(numbered_vocabulary(text.vocabulary)),
      has_next_sentence_(text.has_next_sentence),
      random_(seed, base::Purpose::SyntheticText) {
  base::require(ids_.num_sequences() == 0 || ids_.length_of(0) >= 3,
                "a sequence has at least three tokens: {}",
                ids_.num_sequences() == 0 ? 0 : ids_.length_of(0));
}

void SyntheticSequences::append(std::uint64_t id, std::vector<TokenId>& tokens,
                                std::vector<std::uint8_t>& segments) const {
  const std::int64_t length = this->length(id);
  const bool is_pair = has_next_sentence_ && length >= kShortestPair;
  const std::int64_t end_of_a = is_pair ? length / 2 : length - 1;
  const auto num_words = static_cast<std::uint64_t>(vocabulary_.size - kNumSpecial);
  for (std::int64_t i = 0; i < length; ++i) {
    const base::PhiloxCounter bits = random_(id, static_cast<std::uint32_t>(i));
    TokenId token = kNumSpecial + static_cast<TokenId>(base::to_range(bits, num_words));
    if (i == 0) token = vocabulary_.special.cls;
    if (i == end_of_a || i == length - 1) token = vocabulary_.special.sep;
    tokens.push_back(token);
    segments.push_back(i > end_of_a ? 1 : 0);
  }
}

bool SyntheticSequences::is_random_next(std::uint64_t id) const {
  return (random_(id, 0, 0, 1)[0] & 1) != 0;
}

}  // namespace plenum::data

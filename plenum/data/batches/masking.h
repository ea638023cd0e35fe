#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/base/philox.h"
#include "plenum/data/tokenizer/vocabulary.h"

namespace plenum::data {

/// What is masked together: single tokens, or words with all their pieces.
enum class MaskUnit { Token, Word };

/// What masked tokens become, in percent; the three make 100.
struct MaskSplit {
  std::uint32_t mask = 80;    ///< [MASK]
  std::uint32_t random = 10;  ///< any token that is not special
  std::uint32_t keep = 10;    ///< what they were

  friend bool operator==(const MaskSplit&, const MaskSplit&) = default;
};

/// "80/10/10". Throws UserError naming `what` unless it is three whole numbers that make 100.
MaskSplit parse_mask_split(std::string_view text, std::string_view what);

struct MaskingOptions {
  double rate = 0.15;  ///< masked tokens of a sequence over its length; in (0, 1]
  MaskUnit unit = MaskUnit::Token;
  MaskSplit split = {};
};

/// How many tokens of a sequence of `length` tokens (special ones included) are masked: max(1, round(rate *
/// length)), but no more than there can be, since [CLS] and the one or two [SEP] are never masked. A function
/// of the length alone, so what micro-batches need is known before training. Never falls as the length grows.
std::int64_t masked_count(std::int64_t length, double rate);

/// What masking has to know of a vocabulary.
struct MaskingVocabulary {
  MaskingVocabulary() = default;
  explicit MaskingVocabulary(const Vocabulary& vocabulary);

  std::int64_t size = 0;
  SpecialTokens special;
  std::vector<bool> continues;  ///< by id: the piece continues a word
};

/// The masks of one epoch: which tokens of a sequence are masked and what they become, as a pure function of
/// (seed, epoch, sample, position), whatever surrounds the sequence.
///
/// The first token of a sequence and the last of each segment are special and never masked; which they are
/// follows from the segments. [UNK] is masked like any other token.
///
/// *Token*: those whose hashes are least.
///
/// *Word*: words are ranked by the hash of their first token and taken whole until the count is reached; of
/// the last one only as many of its first tokens as make the count exact. A word is a token and the
/// continuing pieces behind it; special tokens end words.
class Masking {
 public:
  /// Borrows the vocabulary. Throws UserError if the rate is not in (0, 1] or there are only special tokens.
  Masking(const MaskingOptions& options, const MaskingVocabulary& vocabulary, std::uint64_t seed,
          std::uint64_t epoch);

  /// Masks a sequence in place and appends the masked_count() masked positions, increasing, and what stood
  /// there. Ids must be those of the vocabulary.
  void mask(std::uint64_t sample, std::span<TokenId> ids, std::span<const std::uint8_t> segments,
            std::vector<std::int32_t>& positions, std::vector<TokenId>& labels) const;

 private:
  /// Tokens that are ranked together.
  struct Candidate {
    std::uint64_t hash = 0;
    std::int32_t position = 0;  ///< of its first token
    std::int32_t length = 0;

    friend auto operator<=>(const Candidate&, const Candidate&) = default;
  };

  std::vector<Candidate> candidates(std::uint64_t sample, std::span<const TokenId> ids,
                                    std::span<const std::uint8_t> segments) const;
  TokenId replacement(std::uint64_t sample, std::int32_t position, TokenId id) const;
  TokenId random_token(const base::PhiloxCounter& bits) const;

  MaskingOptions options_;
  const MaskingVocabulary& vocabulary_;
  std::vector<TokenId> special_;  ///< increasing
  base::RandomFunction ranking_;
  base::RandomFunction replacing_;
};

}  // namespace plenum::data

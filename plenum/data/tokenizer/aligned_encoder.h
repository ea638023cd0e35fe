#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/data/tokenizer/tokenizer.h"

namespace plenum::data {

/// A token with the bytes of the text that it stands for.
struct AlignedToken {
  TokenId id = 0;
  std::int32_t begin = 0;
  std::int32_t end = 0;

  friend bool operator==(const AlignedToken&, const AlignedToken&) = default;
};

/// Turns text into the ids that Encoder gives, each with its place in the text as it was before it was
/// normalised: from the beginning of its first character to the end of its last, as Hugging Face's fast
/// tokenizers count it. What normalisation drops belongs to a token only where it stands inside. Slower than
/// Encoder: it keeps a place for every character. One per thread. Borrows the tokenizer.
class AlignedEncoder {
 public:
  explicit AlignedEncoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  /// Appends the tokens of `text`; added tokens are found in it as Hugging Face does.
  void encode(std::string_view text, std::vector<AlignedToken>& tokens);

 private:
  /// A character of the word that is being gathered, normalised, with its place in the text.
  struct Character {
    char32_t code_point = 0;
    std::uint8_t combining_class = 0;  ///< 0: nothing is sorted across it
    std::int32_t begin = 0;
    std::int32_t end = 0;
  };

  void split(std::string_view text, std::int32_t offset, std::vector<AlignedToken>& tokens);
  void take(const Normalizer::Outcome& outcome, std::int32_t begin, std::int32_t end,
            std::vector<AlignedToken>& tokens);
  void end_word(std::vector<AlignedToken>& tokens);

  const Tokenizer& tokenizer_;
  std::vector<Character> word_;
  std::size_t num_sorted_ = 0;  ///< characters of the word before which nothing is sorted any more
  std::string bytes_;           ///< of the word
  std::vector<std::size_t> character_of_byte_;
  std::vector<TokenId> pieces_;
};

}  // namespace plenum::data

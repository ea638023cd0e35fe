#include <algorithm>
#include <array>

#include "plenum/base/check.h"
#include "plenum/data/tokenizer/tokenizer.h"

namespace plenum::data {
namespace {

/// Hugging Face's clean-up takes the space away before these. It looks at one token at a time, so its other
/// rules (" ' ", " do not") never apply.
constexpr std::array<std::string_view, 9> kJoinedToTheLeft = {".",  "?",  "!",   ",",  "n't",
                                                              "'m", "'s", "'ve", "'re"};

}  // namespace

std::string decode(const Vocabulary& vocabulary, std::span<const TokenId> ids) {
  std::string text;
  for (std::size_t index = 0; index < ids.size(); ++index) {
    const TokenId id = ids[index];
    base::check(id >= 0 && static_cast<std::size_t>(id) < vocabulary.size(),
                "a token id is outside the vocabulary: id={} size={}", id, vocabulary.size());
    std::string_view token = vocabulary.token(id);
    if (index != 0) {
      const bool joined = std::any_of(kJoinedToTheLeft.begin(), kJoinedToTheLeft.end(),
                                      [token](std::string_view start) { return token.starts_with(start); });
      if (token.starts_with(kContinuingPrefix)) {
        token.remove_prefix(kContinuingPrefix.size());
      } else if (!joined) {
        text += ' ';
      }
    }
    text += token;
  }
  return text;
}

}  // namespace plenum::data

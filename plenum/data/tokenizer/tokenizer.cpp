#include "plenum/data/tokenizer/tokenizer.h"

#include <algorithm>
#include <cstring>

#include "plenum/base/check.h"

namespace plenum::data {
namespace {

std::vector<AddedToken> special_tokens(const Vocabulary& vocabulary) {
  const SpecialTokens& special = vocabulary.special();
  std::vector<AddedToken> tokens;
  for (const TokenId id : {special.pad, special.unknown, special.cls, special.sep, special.mask}) {
    tokens.push_back({.content = vocabulary.token(id), .id = id});
  }
  return tokens;
}

}  // namespace

Tokenizer::Tokenizer(Vocabulary vocabulary, const NormalizerRules& rules, int max_chars_per_word,
                     std::optional<std::vector<AddedToken>> added_tokens)
    : vocabulary_(std::move(vocabulary)),
      max_chars_per_word_(max_chars_per_word),
      added_tokens_(added_tokens ? std::move(*added_tokens) : special_tokens(vocabulary_)),
      normalizer_(std::make_unique<const Normalizer>(rules)) {
  base::require(max_chars_per_word > 0, "max_input_chars_per_word must be at least 1: {}",
                max_chars_per_word);
  std::vector<TokenId> excluded;
  for (const AddedToken& token : added_tokens_) {
    base::check(!token.content.empty(), "an added token must not be empty: id {}", token.id);
    if (!token.in_model) excluded.push_back(token.id);
    if (added_token_starts_.find(token.content.front()) == std::string::npos) {
      added_token_starts_ += token.content.front();
    }
  }
  std::stable_sort(added_tokens_.begin(), added_tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return a.content.size() > b.content.size();
  });
  wordpiece_ = std::make_unique<const WordPiece>(vocabulary_, excluded);
}

const AddedToken* Tokenizer::added_token_at(const char* at, const char* end) const {
  const std::string_view rest(at, static_cast<std::size_t>(end - at));
  for (const AddedToken& token : added_tokens_) {
    if (rest.starts_with(token.content)) return &token;
  }
  return nullptr;
}

const char* Tokenizer::find_added_token_start(const char* at, const char* end) const {
  if (at == end || added_token_starts_.empty()) return end;
  if (added_token_starts_.size() == 1) {
    const void* found = std::memchr(at, added_token_starts_.front(), static_cast<std::size_t>(end - at));
    return found != nullptr ? static_cast<const char*>(found) : end;
  }
  return std::find_first_of(at, end, added_token_starts_.begin(), added_token_starts_.end());
}

}  // namespace plenum::data

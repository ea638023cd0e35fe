#include <algorithm>

#include "plenum/data/tokenizer/tokenizer.h"

namespace plenum::data {
namespace {

constexpr std::size_t kNumBuckets = std::size_t{1} << 14;
constexpr std::size_t kFlushAt = 4096;

}  // namespace

Encoder::Encoder(const Tokenizer& tokenizer, AddedTokens added_tokens)
    : tokenizer_(&tokenizer),
      added_tokens_(added_tokens),
      splitter_(*tokenizer.normalizer_, static_cast<std::size_t>(tokenizer.max_chars_per_word())),
      cache_(kNumBuckets),
      // A word's pieces number at most its characters, each of at most four bytes; a hit stores kCachedPieces
      // at once.
      found_(kFlushAt + 4 * static_cast<std::size_t>(tokenizer.max_chars_per_word()) + kCachedPieces) {}

[[gnu::always_inline]] inline void Encoder::short_word(const WordKey& key) {
  Bucket& bucket = cache_[key.hash() & (kNumBuckets - 1)];
  for (const CachedWord& word : bucket.words) {
    if (word.key != key) continue;
    std::copy_n(word.pieces, kCachedPieces,
                found_.data() + num_found_);  // all of them: cheaper than asking how many
    num_found_ += word.count;
    if (num_found_ >= kFlushAt) [[unlikely]]
      flush();
    return;
  }
  add_short_word(key, bucket);
}

void Encoder::encode(std::string_view text, std::vector<TokenId>& ids) {
  ids_ = &ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  if (added_tokens_ == AddedTokens::Match) {
    const char* candidate = at;
    while ((candidate = tokenizer_->find_added_token_start(candidate, end)) != end) {
      const AddedToken* token = tokenizer_->added_token_at(candidate, end);
      if (token == nullptr) {
        ++candidate;
        continue;
      }
      splitter_.split({at, static_cast<std::size_t>(candidate - at)}, *this);
      found_[num_found_++] = token->id;
      flush();
      at = candidate += token->content.size();
    }
  }
  splitter_.split({at, static_cast<std::size_t>(end - at)}, *this);
  flush();
}

void Encoder::flush() {
  ids_->insert(ids_->end(), found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(num_found_));
  num_found_ = 0;
}

void Encoder::add_short_word(const WordKey& key, Bucket& bucket) {
  const std::array<char, WordKey::kMaxBytes> bytes = key.bytes();
  const TokenId* const first = found_.data() + num_found_;
  const std::size_t count = cut({bytes.data(), key.size()});
  if (count <= kCachedPieces) {
    bucket.words[1] = bucket.words[0];
    bucket.words[0] = {.key = key, .count = static_cast<std::uint32_t>(count)};
    std::copy_n(first, count, bucket.words[0].pieces);
  }
  finish_word(count);
}

void Encoder::long_word(std::string_view word) {
  finish_word(cut(word));
}

void Encoder::oversized_word() {
  found_[num_found_] = tokenizer_->vocabulary().special().unknown;
  finish_word(1);
}

std::size_t Encoder::cut(std::string_view word) {
  const std::size_t count = tokenizer_->wordpiece_->cut(word, found_.data() + num_found_);
  if (count != 0) return count;
  found_[num_found_] = tokenizer_->vocabulary().special().unknown;
  return 1;
}

void Encoder::finish_word(std::size_t count) {
  num_found_ += count;
  if (num_found_ >= kFlushAt) flush();
}

}  // namespace plenum::data

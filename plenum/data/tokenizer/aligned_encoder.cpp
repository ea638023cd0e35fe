#include "plenum/data/tokenizer/aligned_encoder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/data/text/utf8.h"

namespace plenum::data {

void AlignedEncoder::encode(std::string_view text, std::vector<AlignedToken>& tokens) {
  base::require(text.size() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
                "a text is too long: {} bytes", text.size());
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto offset_of = [&](const char* at) { return static_cast<std::int32_t>(at - begin); };
  const char* at = begin;
  const char* candidate = begin;
  while ((candidate = tokenizer_.find_added_token_start(candidate, end)) != end) {
    const AddedToken* const added = tokenizer_.added_token_at(candidate, end);
    if (added == nullptr) {
      ++candidate;
      continue;
    }
    split({at, static_cast<std::size_t>(candidate - at)}, offset_of(at), tokens);
    at = candidate + added->content.size();
    tokens.push_back({.id = added->id, .begin = offset_of(candidate), .end = offset_of(at)});
    candidate = at;
  }
  split({at, static_cast<std::size_t>(end - at)}, offset_of(at), tokens);
}

void AlignedEncoder::split(std::string_view text, std::int32_t offset, std::vector<AlignedToken>& tokens) {
  const Normalizer& normalizer = *tokenizer_.normalizer_;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    const DecodedCharacter character = decode_utf8(at, end);
    const auto begin = offset + static_cast<std::int32_t>(at - text.data());
    const auto behind = begin + static_cast<std::int32_t>(character.length);
    at += character.length;
    const Normalizer::Entry entry = normalizer[character.code_point];
    if (entry.kind() == Normalizer::Kind::Sequence) {
      for (const Normalizer::Outcome& outcome : normalizer.sequence(entry))
        take(outcome, begin, behind, tokens);
    } else {
      take({.kind = entry.kind(), .code_point = entry.code_point(character.code_point)}, begin, behind,
           tokens);
    }
  }
  end_word(tokens);
}

void AlignedEncoder::take(const Normalizer::Outcome& outcome, std::int32_t begin, std::int32_t end,
                          std::vector<AlignedToken>& tokens) {
  const Character character{.code_point = outcome.code_point,
                            .combining_class = outcome.combining_class,
                            .begin = begin,
                            .end = end};
  switch (outcome.kind) {
    case Normalizer::Kind::Word: {
      if (std::cmp_greater(word_.size(), tokenizer_.max_chars_per_word())) {  // unknown, whatever follows
        word_.back().end = end;
        break;
      }
      auto place = word_.end();
      if (outcome.combining_class != 0) {
        // Behind the marks of its own class and below, as canonical ordering has it.
        while (place != word_.begin() + static_cast<std::ptrdiff_t>(num_sorted_) &&
               (place - 1)->combining_class > outcome.combining_class)
          --place;
      }
      word_.insert(place, character);
      if (outcome.combining_class == 0) num_sorted_ = word_.size();
      break;
    }
    case Normalizer::Kind::Space:
      end_word(tokens);
      break;
    case Normalizer::Kind::Isolated:
      end_word(tokens);
      word_.push_back(character);
      end_word(tokens);
      break;
    case Normalizer::Kind::Barrier:
      num_sorted_ = word_.size();
      break;
    case Normalizer::Kind::Removed:
    case Normalizer::Kind::Sequence:
      break;
  }
}

void AlignedEncoder::end_word(std::vector<AlignedToken>& tokens) {
  num_sorted_ = 0;
  if (word_.empty()) return;
  bytes_.clear();
  character_of_byte_.clear();
  for (std::size_t i = 0; i < word_.size(); ++i) {
    char bytes[4];
    const std::uint32_t length = encode_utf8(word_[i].code_point, bytes);
    bytes_.append(bytes, length);
    character_of_byte_.insert(character_of_byte_.end(), length, i);
  }
  const auto add = [&](TokenId id, std::size_t first_byte, std::size_t num_bytes) {
    const Character& first = word_[character_of_byte_[first_byte]];
    const Character& last = word_[character_of_byte_[first_byte + num_bytes - 1]];
    tokens.push_back({.id = id, .begin = first.begin, .end = last.end});
  };
  std::size_t num_pieces = 0;
  if (std::cmp_less_equal(word_.size(), tokenizer_.max_chars_per_word())) {
    pieces_.resize(bytes_.size());
    num_pieces = tokenizer_.wordpiece_->cut(bytes_, pieces_.data());
  }
  if (num_pieces == 0) add(tokenizer_.vocabulary().special().unknown, 0, bytes_.size());
  std::size_t place = 0;
  for (std::size_t i = 0; i < num_pieces; ++i) {
    const std::string& piece = tokenizer_.vocabulary().token(pieces_[i]);
    const std::size_t num_bytes = piece.size() - (i == 0 ? 0 : kContinuingPrefix.size());
    add(pieces_[i], place, num_bytes);
    place += num_bytes;
  }
  word_.clear();
}

}  // namespace plenum::data

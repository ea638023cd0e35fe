#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/data/text/utf8.h"
#include "plenum/data/tokenizer/normalizer.h"

namespace plenum::data {

/// A word of 1 to 16 bytes without NUL, in two machine words padded with zeros: comparing is two
/// instructions, hashing a few, and no string is touched.
struct WordKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  static constexpr std::size_t kMaxBytes = 16;

  std::size_t size() const {
    return kMaxBytes -
           static_cast<std::size_t>(high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(low)) / 8;
  }
  std::array<char, kMaxBytes> bytes() const { return std::bit_cast<std::array<char, kMaxBytes>>(*this); }
  std::uint64_t hash() const {
    const unsigned __int128 product = static_cast<unsigned __int128>(low ^ 0x9E3779B97F4A7C15U) *
                                      static_cast<std::uint64_t>(high ^ 0xD6E8FEB86659FD93U);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  bool operator==(const WordKey&) const = default;
};

/// Normalises text and splits it into words, as Hugging Face's BertNormalizer and BertPreTokenizer do
/// together. Runs of ASCII letters and digits are taken eight bytes at a time; all else goes through the
/// table. One per thread: it owns scratch. Borrows the normalizer.
class WordSplitter {
 public:
  /// Words of more than `max_word_chars` characters are reported but not kept, so that memory stays bounded.
  WordSplitter(const Normalizer& normalizer, std::size_t max_word_chars);

  /// Calls, in order of the text, `sink.short_word(WordKey)` for words that fit a key,
  /// `sink.long_word(string_view)` for others (the view ends with the call), and `sink.oversized_word()`.
  template <typename Sink>
  void split(std::string_view text, Sink& sink);

 private:
  static_assert(std::endian::native == std::endian::little,
                "word keys are laid out for little-endian machines");

  enum class AsciiKind : std::uint8_t { Other, Alphanumeric, Space, Isolated };

  /// Eight bytes: bit 7 of each byte of `stops` is set where no ASCII letter or digit stands; `folded` is the
  /// text in lower case if the rules ask for it.
  struct Scan {
    std::uint64_t stops;
    std::uint64_t folded;
  };

  Scan scan(const char* at) const {
    constexpr std::uint64_t kOnes = 0x0101010101010101U;
    constexpr std::uint64_t kHigh = 0x80 * kOnes;
    std::uint64_t text = 0;
    std::memcpy(&text, at, sizeof text);
    // With bit 7 out of the way an addition in each byte carries into bit 7 exactly from a bound on.
    const std::uint64_t low = text & ~kHigh;
    const std::uint64_t lower = low | 0x20 * kOnes;
    const std::uint64_t letter = (lower + (0x80 - 'a') * kOnes) & ~(lower + (0x7F - 'z') * kOnes) & kHigh;
    const std::uint64_t digit = (low + (0x80 - '0') * kOnes) & ~(low + (0x7F - '9') * kOnes) & kHigh;
    return {.stops = ((letter | digit) & ~text & kHigh) ^ kHigh,
            .folded = text | ((letter >> 2) & fold_mask_)};
  }

  template <typename Sink>
  const char* split_general(const char* at, const char* end, Sink& sink);
  template <typename Sink>
  void take(const Normalizer::Outcome& outcome, Sink& sink);
  template <typename Sink>
  void end_word(Sink& sink);

  void append(char32_t code_point);
  void append_sorted(char32_t code_point, std::uint8_t combining_class);

  const Normalizer* normalizer_;
  std::size_t max_word_chars_;
  std::uint64_t fold_mask_;
  std::array<AsciiKind, 256> kinds_{};

  std::string word_;
  std::size_t num_chars_ = 0;
  bool has_nul_ = false;
  /// The marks at the end of word_ that canonical ordering may still move.
  struct PendingMark {
    std::uint8_t combining_class;
    std::uint8_t num_bytes;
  };
  std::vector<PendingMark> pending_;
};

inline void WordSplitter::append(char32_t code_point) {
  pending_.clear();
  if (++num_chars_ > max_word_chars_) return;
  char bytes[4];
  word_.append(bytes, encode_utf8(code_point, bytes));
  has_nul_ |= code_point == 0;
}

template <typename Sink>
void WordSplitter::end_word(Sink& sink) {
  pending_.clear();
  if (num_chars_ == 0) return;
  if (num_chars_ > max_word_chars_) {
    sink.oversized_word();
  } else if (word_.size() <= WordKey::kMaxBytes && !has_nul_) {
    WordKey key;
    std::memcpy(&key, word_.data(), word_.size());
    sink.short_word(key);
  } else {
    sink.long_word(std::string_view(word_));
  }
  word_.clear();
  num_chars_ = 0;
  has_nul_ = false;
}

template <typename Sink>
void WordSplitter::take(const Normalizer::Outcome& outcome, Sink& sink) {
  switch (outcome.kind) {
    case Normalizer::Kind::Word:
      if (outcome.combining_class != 0) {
        append_sorted(outcome.code_point, outcome.combining_class);
      } else {
        append(outcome.code_point);
      }
      break;
    case Normalizer::Kind::Space:
      end_word(sink);
      break;
    case Normalizer::Kind::Isolated:
      end_word(sink);
      append(outcome.code_point);
      end_word(sink);
      break;
    case Normalizer::Kind::Barrier:
      pending_.clear();
      break;
    case Normalizer::Kind::Removed:
    case Normalizer::Kind::Sequence:
      break;
  }
}

/// Splits character by character up to the end of a word, and returns where it stopped.
template <typename Sink>
const char* WordSplitter::split_general(const char* at, const char* end, Sink& sink) {
  while (at != end) {
    const DecodedCharacter character = decode_utf8(at, end);
    at += character.length;
    const Normalizer::Entry entry = (*normalizer_)[character.code_point];
    if (entry.kind() == Normalizer::Kind::Word) {
      append(entry.code_point(character.code_point));
    } else if (entry.kind() == Normalizer::Kind::Sequence) {
      for (const Normalizer::Outcome& outcome : normalizer_->sequence(entry)) take(outcome, sink);
    } else {
      take({.kind = entry.kind(), .code_point = entry.code_point(character.code_point)}, sink);
      if (num_chars_ == 0) return at;
    }
  }
  end_word(sink);
  return at;
}

template <typename Sink>
void WordSplitter::split(std::string_view text, Sink& sink) {
  constexpr std::size_t kPadded = WordKey::kMaxBytes;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    // Near the end the scan must not read past the text: it gets a copy that is padded with spaces.
    const char* source = at;
    char padded[kPadded];
    const auto rest = static_cast<std::size_t>(end - at);
    if (rest < kPadded) [[unlikely]] {
      std::memset(padded, ' ', kPadded);
      std::memcpy(padded, at, rest);
      source = padded;
    }
    const Scan first = scan(source);
    WordKey key{.low = first.folded};
    std::size_t length = 0;
    if (first.stops != 0) [[likely]] {
      const int bits = std::countr_zero(first.stops) - 7;
      length = static_cast<std::size_t>(bits) / 8;
      key.low &= (std::uint64_t{1} << bits) - 1;
    } else {
      const Scan second = scan(source + 8);
      if (second.stops != 0) {
        const int bits = std::countr_zero(second.stops) - 7;
        length = 8 + static_cast<std::size_t>(bits) / 8;
        key.high = second.folded & ((std::uint64_t{1} << bits) - 1);
      } else {
        at = split_general(at, end, sink);
        continue;
      }
    }
    const AsciiKind stop = kinds_[static_cast<unsigned char>(source[length])];
    if (stop == AsciiKind::Other) [[unlikely]] {  // it may belong to the word, or vanish
      at = split_general(at, end, sink);
      continue;
    }
    if (length > max_word_chars_) [[unlikely]] {
      sink.oversized_word();
    } else if (length != 0) {
      sink.short_word(key);
    }
    at += length;
    if (at == end) break;
    if (stop == AsciiKind::Isolated) sink.short_word(WordKey{.low = static_cast<unsigned char>(*at)});
    ++at;
  }
}

}  // namespace plenum::data

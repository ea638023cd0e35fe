#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plenum::data {

/// How text is changed before it is split: the fields of Hugging Face's BertNormalizer.
struct NormalizerRules {
  bool clean_text = true;             ///< drop control characters, turn white space into spaces
  bool handle_chinese_chars = true;   ///< set ideographs apart
  std::optional<bool> strip_accents;  ///< decompose and drop nonspacing marks; absent follows `lowercase`
  bool lowercase = true;

  bool strips_accents() const { return strip_accents.value_or(lowercase); }
  bool operator==(const NormalizerRules&) const = default;
};

/// What becomes of each code point under given rules: cleaning, ideographs, decomposition, dropping of marks,
/// lower case and the split into words, folded into one table of two levels (about 1 MB).
class Normalizer {
 public:
  enum class Kind : std::uint8_t {
    Word,      ///< part of a word, as the code point given
    Space,     ///< ends a word
    Isolated,  ///< a word of its own, as the code point given
    Removed,   ///< as if it were not there
    Barrier,   ///< a dropped starter: marks are not sorted across it
    Sequence,  ///< several outcomes, see sequence()
  };

  /// One outcome: a code point with its combining class, 0 where order stays as it is.
  struct Outcome {
    Kind kind = Kind::Removed;
    std::uint8_t combining_class = 0;
    char32_t code_point = 0;
  };

  /// What becomes of one code point, in one word.
  class Entry {
   public:
    Entry() = default;
    Entry(Kind kind, std::uint32_t value) : bits_(static_cast<std::uint32_t>(kind) << 24 | value) {}
    Kind kind() const { return static_cast<Kind>(bits_ >> 24); }
    /// For Word and Isolated: what `source` becomes. Held as a difference, so that pages can be shared.
    char32_t code_point(char32_t source) const { return source ^ value(); }
    std::uint32_t value() const { return bits_ & 0xFFFFFF; }
    std::uint32_t bits() const { return bits_; }

   private:
    std::uint32_t bits_ = 0;
  };

  explicit Normalizer(const NormalizerRules& rules);

  const NormalizerRules& rules() const { return rules_; }
  Entry operator[](char32_t code_point) const {
    return entries_[static_cast<std::size_t>(pages_[code_point / kPageSize]) * kPageSize +
                    code_point % kPageSize];
  }
  /// The outcomes of an entry of Kind::Sequence.
  std::span<const Outcome> sequence(Entry entry) const {
    return std::span(outcomes_).subspan(entry.value() >> kSizeBits, entry.value() & ((1U << kSizeBits) - 1));
  }

 private:
  static constexpr char32_t kPageSize = 256;
  static constexpr std::uint32_t kSizeBits = 4;

  std::vector<Outcome> outcomes(char32_t code_point) const;
  Entry entry_of(char32_t code_point);

  NormalizerRules rules_;
  std::vector<std::uint16_t> pages_;
  std::vector<Entry> entries_;
  std::vector<Outcome> outcomes_;
};

}  // namespace plenum::data

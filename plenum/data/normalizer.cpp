#include "plenum/data/normalizer.h"

#include <algorithm>

#include "plenum/data/unicode.h"

namespace plenum::data {
namespace {

using Kind = Normalizer::Kind;
using Outcome = Normalizer::Outcome;

Kind kind_of(char32_t code_point) {
  if (is_whitespace(code_point)) return Kind::Space;
  return is_punctuation(code_point) ? Kind::Isolated : Kind::Word;
}

/// Planes 4 to 13 hold no characters and planes 15 and 16 only private ones: each of these pages is like its
/// first code point, but for the two noncharacters at the end of a plane, which are like plane 4.
bool is_uniform_page(char32_t first) {
  const char32_t plane = first >> 16;
  return (plane >= 4 && plane <= 13) || (plane >= 15 && (first & 0xFFFF) != 0xFF00);
}

}  // namespace

Normalizer::Normalizer(const NormalizerRules& rules) : rules_(rules) {
  std::optional<std::uint16_t> unassigned_page;
  std::optional<std::uint16_t> private_page;
  const auto add_page = [this](char32_t first) {
    for (char32_t offset = 0; offset < kPageSize; ++offset) entries_.push_back(entry_of(first + offset));
    return static_cast<std::uint16_t>(entries_.size() / kPageSize - 1);
  };
  for (char32_t first = 0; first < kNumCodePoints; first += kPageSize) {
    if (!is_uniform_page(first)) {
      pages_.push_back(add_page(first));
      continue;
    }
    std::optional<std::uint16_t>& shared = first < 0xF0000 ? unassigned_page : private_page;
    if (!shared) shared = add_page(first);
    pages_.push_back(*shared);
  }
}

/// The rules in Hugging Face's order: clean, ideographs, decompose and drop marks, lower case; then the kind
/// of every resulting character for the split.
std::vector<Outcome> Normalizer::outcomes(char32_t code_point) const {
  if (rules_.clean_text) {
    if (is_control(code_point)) return {};
    if (is_whitespace(code_point)) return {{.kind = Kind::Space, .code_point = ' '}};
  }
  CodePoints parts{.values = {code_point}, .size = 1};
  if (rules_.strips_accents()) parts = decompose(code_point);
  std::vector<Outcome> result;
  for (const char32_t part : parts) {
    const auto order = static_cast<std::uint8_t>(rules_.strips_accents() ? combining_class(part) : 0);
    if (rules_.strips_accents() && is_nonspacing_mark(part)) {
      if (order == 0) result.push_back({.kind = Kind::Barrier});
      continue;
    }
    CodePoints lowered{.values = {part}, .size = 1};
    if (rules_.lowercase) lowered = lowercase(part);
    for (const char32_t final : lowered) {
      result.push_back({.kind = kind_of(final), .combining_class = order, .code_point = final});
    }
  }
  if (rules_.handle_chinese_chars && is_cjk(code_point)) {
    if (result.size() == 1) {
      result.front().kind = Kind::Isolated;
    } else {
      const Outcome space{.kind = Kind::Space, .code_point = ' '};
      result.insert(result.begin(), space);
      result.push_back(space);
    }
  }
  return result;
}

Normalizer::Entry Normalizer::entry_of(char32_t code_point) {
  const std::vector<Outcome> result = outcomes(code_point);
  if (result.empty()) return {Kind::Removed, 0};
  if (result.size() == 1 && result.front().combining_class == 0) {
    return {result.front().kind, result.front().code_point ^ code_point};
  }
  const auto first = static_cast<std::uint32_t>(outcomes_.size());
  outcomes_.insert(outcomes_.end(), result.begin(), result.end());
  return {Kind::Sequence, first << kSizeBits | static_cast<std::uint32_t>(result.size())};
}

}  // namespace plenum::data

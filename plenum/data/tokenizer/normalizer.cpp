#include "plenum/data/tokenizer/normalizer.h"

#include <map>

#include "plenum/data/text/unicode.h"

namespace plenum::data {
namespace {

using Kind = Normalizer::Kind;
using Outcome = Normalizer::Outcome;

Kind kind_of(char32_t code_point) {
  if (is_whitespace(code_point)) return Kind::Space;
  return is_punctuation(code_point) ? Kind::Isolated : Kind::Word;
}

/// Pages on which every code point fares like the first, so that one page serves them all: ideographs,
/// private use, and planes without characters. Whether a page is one of ideographs still depends on its ends.
bool is_uniform_page(char32_t first, char32_t last) {
  const bool has_noncharacters = (last & 0xFFFF) == 0xFFFF;
  const bool is_private = (first >= 0xE000 && last <= 0xF8FF) || (first >= 0xF0000 && !has_noncharacters);
  const bool is_ideographic = (first >= 0x3400 && last <= 0x4DBF) || (first >= 0x4E00 && last <= 0x9FFF) ||
                              (first >= 0x20000 && last < 0x2F800) || (first >= 0x30000 && last < 0x40000);
  const bool is_empty = (first >= 0x40000 && last < 0xE0000) || (first >= 0xE1000 && last < 0xF0000);
  return is_private || is_empty || (is_ideographic && is_cjk(first) == is_cjk(last));
}

}  // namespace

Normalizer::Normalizer(const NormalizerRules& rules) : rules_(rules) {
  std::map<std::uint32_t, std::uint16_t> shared;  // uniform pages by the entry they repeat
  for (char32_t first = 0; first < kNumCodePoints; first += kPageSize) {
    const char32_t last = first + kPageSize - 1;
    const bool is_uniform = is_uniform_page(first, last);
    const auto page = static_cast<std::uint16_t>(entries_.size() / kPageSize);
    if (is_uniform) {
      const Entry entry = entry_of(first);
      const auto [place, is_new] = shared.emplace(entry.bits(), page);
      pages_.push_back(place->second);
      if (is_new) entries_.insert(entries_.end(), kPageSize, entry);
    } else {
      pages_.push_back(page);
      for (char32_t code_point = first; code_point <= last; ++code_point)
        entries_.push_back(entry_of(code_point));
    }
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

#pragma once

#include <array>
#include <cstdint>

namespace plenum::data {

constexpr char32_t kNumCodePoints = 0x110000;
constexpr char32_t kReplacementCharacter = 0xFFFD;

// Character properties as Hugging Face `tokenizers` sees them: utf8proc's, corrected by
// unicode_differences.h. They do not depend on the version of utf8proc, and neither do ids.

/// Up to four code points.
struct CodePoints {
  std::array<char32_t, 4> values{};
  std::uint32_t size = 0;

  const char32_t* begin() const { return values.data(); }
  const char32_t* end() const { return values.data() + size; }
};

/// Unicode White_Space.
bool is_whitespace(char32_t code_point);

/// Categories Cc, Cf and Co but tab, line feed and carriage return, together with U+0000 and U+FFFD: what
/// cleaning drops. Unassigned code points stay.
bool is_control(char32_t code_point);

/// ASCII punctuation and symbols, or category P.
bool is_punctuation(char32_t code_point);

/// Categories L and N.
bool is_alphanumeric(char32_t code_point);

/// The eight blocks of ideographs that BERT sets apart, with the gap U+2B820..U+2B91F that Hugging Face has.
bool is_cjk(char32_t code_point);

/// Category Mn.
bool is_nonspacing_mark(char32_t code_point);

/// 0 for a starter; canonical ordering sorts runs of the others by it.
std::uint32_t combining_class(char32_t code_point);

/// Full canonical decomposition; the code point itself where there is none.
CodePoints decompose(char32_t code_point);

/// Full lower case without context (a final sigma is not special).
CodePoints lowercase(char32_t code_point);

}  // namespace plenum::data

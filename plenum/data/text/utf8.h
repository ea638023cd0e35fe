#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plenum/data/text/unicode.h"

namespace plenum::data {

/// A code point and how many bytes of the text it took.
struct DecodedCharacter {
  char32_t code_point;
  std::uint32_t length;
};

constexpr std::string_view kReplacementBytes = "\xEF\xBF\xBD";  ///< of U+FFFD

/// Decodes the character at `at`, before `end`. Bytes that are no UTF-8 (overlong forms, surrogates, values
/// above U+10FFFF, cut sequences) give U+FFFD for each maximal part that could have begun a character, as
/// Unicode 15.0 section 3.9 recommends and browsers and Python do.
DecodedCharacter decode_utf8(const char* at, const char* end);

/// Whether `decoded`, which decode_utf8() gave at `at`, stands for bytes that are no UTF-8: U+FFFD itself
/// takes three bytes of its own.
inline bool is_invalid(const char* at, const DecodedCharacter& decoded) {
  return decoded.code_point == kReplacementCharacter &&
         std::string_view(at, decoded.length) != kReplacementBytes;
}

/// Writes 1 to 4 bytes at `out` and returns how many.
inline std::uint32_t encode_utf8(char32_t code_point, char* out) {
  const auto put = [&](int place, char32_t bits) { out[place] = static_cast<char>(bits); };
  if (code_point < 0x80) {
    put(0, code_point);
    return 1;
  }
  if (code_point < 0x800) {
    put(0, 0xC0 | (code_point >> 6));
    put(1, 0x80 | (code_point & 0x3F));
    return 2;
  }
  if (code_point < 0x10000) {
    put(0, 0xE0 | (code_point >> 12));
    put(1, 0x80 | ((code_point >> 6) & 0x3F));
    put(2, 0x80 | (code_point & 0x3F));
    return 3;
  }
  put(0, 0xF0 | (code_point >> 18));
  put(1, 0x80 | ((code_point >> 12) & 0x3F));
  put(2, 0x80 | ((code_point >> 6) & 0x3F));
  put(3, 0x80 | (code_point & 0x3F));
  return 4;
}

/// The encoding of two or four bytes a character that the beginning of a text is in, by its byte order mark
/// or by zeros in every other byte, as iconv calls it; empty if it looks like neither.
std::string_view wide_encoding(std::string_view beginning);

/// A command that converts a text that is not UTF-8.
std::string conversion_command(std::string_view beginning);

/// Whether all of `text` is UTF-8. Reads many bytes at once: its time does not count beside that of decoding.
bool is_utf8(std::string_view text);

}  // namespace plenum::data

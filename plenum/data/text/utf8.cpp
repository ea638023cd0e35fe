#include "plenum/data/text/utf8.h"

#include <simdjson.h>

namespace plenum::data {

DecodedCharacter decode_utf8(const char* at, const char* end) {
  const auto byte = [at](int place) { return static_cast<unsigned char>(at[place]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  std::uint32_t length = 0;
  // The second byte's range is narrower after some leads: no overlong forms, no surrogates, nothing above
  // U+10FFFF.
  unsigned char lowest = 0x80;
  unsigned char highest = 0xBF;
  char32_t code_point = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    code_point = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    code_point = lead & 0x0F;
    if (lead == 0xE0) lowest = 0xA0;
    if (lead == 0xED) highest = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    code_point = lead & 0x07;
    if (lead == 0xF0) lowest = 0x90;
    if (lead == 0xF4) highest = 0x8F;
  } else {
    return {kReplacementCharacter, 1};
  }
  for (std::uint32_t place = 1; place < length; ++place) {
    if (at + place == end || byte(static_cast<int>(place)) < lowest ||
        byte(static_cast<int>(place)) > highest) {
      return {kReplacementCharacter, place};
    }
    code_point = code_point << 6 | (byte(static_cast<int>(place)) & 0x3F);
    lowest = 0x80;
    highest = 0xBF;
  }
  return {code_point, length};
}

bool is_utf8(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

std::string_view wide_encoding(std::string_view beginning) {
  using namespace std::string_view_literals;
  if (beginning.starts_with("\xFF\xFE\0\0"sv) || beginning.starts_with("\0\0\xFE\xFF"sv)) return "utf-32";
  if (beginning.starts_with("\xFF\xFE") || beginning.starts_with("\xFE\xFF")) return "utf-16";
  constexpr std::size_t kFewestPairs = 4;
  const std::size_t num_pairs = beginning.size() / 2;
  if (num_pairs < kFewestPairs) return "";
  std::size_t zeros[2] = {0, 0};  // in even places, in odd ones
  for (std::size_t i = 0; i < 2 * num_pairs; ++i) zeros[i % 2] += beginning[i] == '\0' ? 1 : 0;
  // Most letters of European scripts have one; stray zeros in text have no rhythm.
  const auto is_most = [&](std::size_t count) { return 4 * count >= 3 * num_pairs; };
  const auto is_few = [&](std::size_t count) { return 8 * count <= num_pairs; };
  if (is_most(zeros[1]) && is_few(zeros[0])) return "utf-16le";
  if (is_most(zeros[0]) && is_few(zeros[1])) return "utf-16be";
  return "";
}

std::string conversion_command(std::string_view beginning) {
  const std::string_view wide = wide_encoding(beginning);
  return "iconv -f " + std::string(wide.empty() ? "latin1" : wide) + " -t utf-8";
}

}  // namespace plenum::data

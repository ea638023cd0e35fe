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

}  // namespace plenum::data

#include "plenum/data/text/invalid_text.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/data/text/utf8.h"

namespace plenum::data {

void InvalidText::count(std::size_t file_index, std::uint64_t line, std::uint64_t num_bytes) {
  first_file = file_index;
  first_line = places == 0 ? line : std::min(first_line, line);
  ++places;
  bytes += num_bytes;
}

void InvalidText::append(const InvalidText& later) {
  if (places == 0) {
    *this = later;
    return;
  }
  places += later.places;
  bytes += later.bytes;
}

std::string_view replace_invalid_bytes(std::string_view bytes, const SourcePosition& begin,
                                       const std::string& path, InvalidTextRule rule, std::string& valid,
                                       InvalidText& invalid) {
  if (is_utf8(bytes)) return bytes;
  valid.clear();
  const char* const end = bytes.data() + bytes.size();
  std::uint64_t line = begin.line + 1;
  for (const char* at = bytes.data(); at != end;) {
    const DecodedCharacter character = decode_utf8(at, end);
    if (is_invalid(at, character)) {
      base::require(rule == InvalidTextRule::Replace,
                    "{}:{}: the input is not UTF-8; convert it, for instance by iconv -f latin1 -t utf-8, or "
                    "add --invalid-utf8 replace: byte 0x{:02x} at offset {}",
                    path, line, static_cast<unsigned char>(*at), begin.offset + (at - bytes.data()));
      invalid.count(begin.file_index, line, character.length);
      valid += kReplacementBytes;
    } else {
      line += character.code_point == '\n' ? 1 : 0;
      valid.append(at, character.length);
    }
    at += character.length;
  }
  return valid;
}

}  // namespace plenum::data

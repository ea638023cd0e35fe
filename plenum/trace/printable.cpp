#include "plenum/trace/printable.h"

#include <algorithm>
#include <cstdint>

namespace plenum::trace {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

/// The number of bytes of the character that `text` begins with; 0 if it is none that can be shown.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  std::uint32_t code = byte(0) & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0xa0, 0x800, 0x10000};  // below 0xa0: control characters
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  const bool is_shown =
      code >= kLeast[length] && code <= 0x10ffff && !is_surrogate && (code & 0xfffe) != 0xfffe;
  return is_shown ? length : 0;
}

/// Takes a character off the beginning of `text` and gives what is shown for it.
std::string_view take_printable(std::string_view& text) {
  const std::size_t length = character_bytes(text);
  const std::string_view shown = length == 0 ? kReplacement : text.substr(0, length);
  text.remove_prefix(std::max<std::size_t>(length, 1));
  return shown;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) shown += take_printable(text);
  return shown;
}

std::string json_quoted(std::string_view text) {
  std::string json = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  return json + '"';
}

std::string excerpt(std::string_view text, std::size_t most_characters) {
  std::string shown;
  for (std::size_t i = 0; i < most_characters && !text.empty(); ++i) shown += take_printable(text);
  return text.empty() ? shown : shown + "...";
}

std::size_t num_columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace plenum::trace

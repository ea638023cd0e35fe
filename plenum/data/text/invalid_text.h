#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "plenum/data/text/source_position.h"

namespace plenum::data {

/// What becomes of input that is no text: bytes that are not UTF-8, and JSON's escapes of half a surrogate
/// pair.
enum class InvalidTextRule { Refuse, Replace };

/// How much of the input is no text. It was read as U+FFFD, which a normaliser that cleans text leaves out.
struct InvalidText {
  std::uint64_t places = 0;  ///< each was read as one U+FFFD
  std::uint64_t bytes = 0;
  std::size_t first_file = 0;    ///< index among the sources; holds if there is a place
  std::uint64_t first_line = 0;  ///< counted from 1; holds if there is a place

  /// Counts a place of so many bytes in a file. Lines, counted from 1, may come in any order.
  void count(std::size_t file_index, std::uint64_t line, std::uint64_t num_bytes);
  /// Adds what lies behind all that is counted so far.
  void append(const InvalidText& later);
};

/// Input that begins at `begin` in the file `path`, with U+FFFD for what is not UTF-8, which is counted in
/// `invalid`. Lines and fields keep their places, since they end in ASCII. Overwrites `valid`, in which the
/// result lies, unless it is `bytes` itself. Throws UserError with file, line and offset for what is to be
/// refused.
std::string_view replace_invalid_bytes(std::string_view bytes, const SourcePosition& begin,
                                       const std::string& path, InvalidTextRule rule, std::string& valid,
                                       InvalidText& invalid);

/// The key of the counts in JSON.
inline constexpr const char* kInvalidTextKey = "invalid_text";

template <typename Json>
Json invalid_text_to_json(const InvalidText& invalid) {
  return {{"places", invalid.places},
          {"bytes", invalid.bytes},
          {"first_file", invalid.first_file},
          {"first_line", invalid.first_line}};
}

/// What `counts` say under the key; nothing if they were written before it was counted.
template <typename Json>
InvalidText invalid_text_from_json(const Json& counts) {
  if (!counts.contains(kInvalidTextKey)) return {};
  const Json& json = counts.at(kInvalidTextKey);
  return {.places = json.at("places"),
          .bytes = json.at("bytes"),
          .first_file = json.at("first_file"),
          .first_line = json.at("first_line")};
}

}  // namespace plenum::data

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plenum::trace {

/// Gives text that every file format and terminal takes: bytes that are not UTF-8, control characters and
/// what XML forbids become U+FFFD.
std::string printable(std::string_view text);

/// Printable text as a JSON string, with its quotation marks.
std::string json_quoted(std::string_view text);

/// The beginning of a text, printable, for messages: at most `most_characters` and then "..." if it is
/// longer.
std::string excerpt(std::string_view text, std::size_t most_characters = 60);

/// The number of characters of UTF-8 text, which is its width in a terminal for the scripts we write.
std::size_t num_columns(std::string_view text);

}  // namespace plenum::trace

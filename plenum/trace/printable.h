#pragma once

#include <string>
#include <string_view>

namespace plenum::trace {

/// Gives text that every file format and terminal takes: bytes that are not UTF-8, control characters and
/// what XML forbids become U+FFFD.
std::string printable(std::string_view text);

/// The number of characters of UTF-8 text, which is its width in a terminal for the scripts we write.
std::size_t num_columns(std::string_view text);

}  // namespace plenum::trace

#pragma once

#include <cstdio>
#include <string_view>

namespace plenum::cli {

/// What a stream is written to.
struct Terminal {
  bool is_terminal = false;
  bool has_color = false;  ///< it is one, and the user lets programs print in colour
  int width = 0;           ///< columns; 80 where nobody knows
};

Terminal terminal_of(std::FILE* stream);

/// Writes text to a stream, without waiting for more. What cannot be written, because nobody reads it any
/// more or the terminal is gone, is dropped: the work goes on without its words.
void say(std::FILE* stream, std::string_view text);

}  // namespace plenum::cli

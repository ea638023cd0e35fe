#pragma once

#include <cstdio>

namespace plenum::cli {

/// What a stream is written to.
struct Terminal {
  bool is_terminal = false;
  bool has_color = false;  ///< it is one, and the user lets programs print in colour
  int width = 0;           ///< columns; 80 where nobody knows
};

Terminal terminal_of(std::FILE* stream);

}  // namespace plenum::cli

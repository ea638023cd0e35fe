#pragma once

namespace plenum::cli {

/// Whether programs may print in colour: NO_COLOR is not set, or empty (no-color.org), and the terminal is no
/// dumb one (TERM).
bool color_is_welcome();

}  // namespace plenum::cli

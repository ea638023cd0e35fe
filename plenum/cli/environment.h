#pragma once

namespace plenum::cli {

/// Whether the user lets programs print in colour: NO_COLOR is not set, or empty (no-color.org).
bool color_is_welcome();

}  // namespace plenum::cli

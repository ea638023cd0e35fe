#pragma once

namespace plenum::cli {

/// Parses the command line, applies --config and flags (flags win), runs the command and turns errors into
/// one line on standard error. Returns the exit code: 0, 2 (user error), 70 (bug) or the command's own.
int run_command_line(int argc, const char* const* argv);

}  // namespace plenum::cli

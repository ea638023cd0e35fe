#pragma once

namespace plenum::cli {

/// From now on a mapped file that becomes shorter while it is read, or whose disk fails, ends the process
/// with one line that names the file, and kUserErrorCode, in place of SIGBUS. Bus errors of other memory are
/// left to kill the process.
void explain_bus_errors();

}  // namespace plenum::cli

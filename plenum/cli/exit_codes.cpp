#include "plenum/cli/exit_codes.h"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "plenum/cli/terminal.h"

namespace plenum::cli {

void end_hanging_process(std::string_view what) {
  say(stderr, fmt::format("plenum: error: {}\n", what));
  std::fflush(stdout);
  ::_exit(kHangCode);
}

}  // namespace plenum::cli

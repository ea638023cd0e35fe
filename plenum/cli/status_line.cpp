#include "plenum/cli/status_line.h"

#include <fmt/format.h>

namespace plenum::cli {
namespace {

constexpr double kSecondsOnTerminal = 0.1;
constexpr double kSecondsElsewhere = 10;

}  // namespace

StatusLine::StatusLine(std::FILE* stream) : stream_(stream), terminal_(terminal_of(stream)) {}

StatusLine::~StatusLine() {
  erase();
}

bool StatusLine::is_due() const {
  const double passed = std::chrono::duration<double>(Clock::now() - last_shown_).count();
  return passed >= (terminal_.is_terminal ? kSecondsOnTerminal : kSecondsElsewhere);
}

void StatusLine::restart() {
  last_shown_ = Clock::now();
}

void StatusLine::show(std::string_view line) {
  restart();
  if (terminal_.is_terminal) {
    fmt::print(stream_, "\r\x1b[K{}", line);
    is_shown_ = true;
  } else {
    fmt::print(stream_, "{}\n", line);
  }
  std::fflush(stream_);
}

void StatusLine::erase() {
  if (is_shown_) fmt::print(stream_, "\r\x1b[K");
  is_shown_ = false;
  std::fflush(stream_);
}

void StatusLine::note(std::string_view line) {
  erase();
  fmt::print(stream_, "{}\n", line);
  std::fflush(stream_);
}

}  // namespace plenum::cli

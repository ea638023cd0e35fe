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
  is_shown_ = terminal_.is_terminal;
  say(stream_, is_shown_ ? fmt::format("\r\x1b[K{}", line) : fmt::format("{}\n", line));
}

void StatusLine::erase() {
  if (is_shown_) say(stream_, "\r\x1b[K");
  is_shown_ = false;
}

void StatusLine::note(std::string_view line) {
  erase();
  say(stream_, fmt::format("{}\n", line));
}

}  // namespace plenum::cli

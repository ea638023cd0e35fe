#include "plenum/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "plenum/cli/environment.h"

namespace plenum::cli {

Terminal terminal_of(std::FILE* stream) {
  constexpr int kUsualWidth = 80;
  const int descriptor = ::fileno(stream);
  winsize size{};
  const bool is_width_known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const bool is_terminal = ::isatty(descriptor) != 0;
  return {.is_terminal = is_terminal,
          .has_color = is_terminal && color_is_welcome(),
          .width = is_width_known ? size.ws_col : kUsualWidth};
}

void say(std::FILE* stream, std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stream));
  static_cast<void>(std::fflush(stream));
}

}  // namespace plenum::cli

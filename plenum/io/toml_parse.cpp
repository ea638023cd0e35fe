#include "plenum/io/toml_parse.h"

#include <string_view>

#include "plenum/base/check.h"

namespace plenum::io {
namespace {

/// Throws UserError for a character outside ASCII that stands outside strings and comments. TOML forbids it,
/// and toml++ 3.3 runs into undefined behaviour on some of them (found by fuzzing) before it would say so.
void require_ascii_outside_strings(const std::string& text, const std::string& path) {
  std::size_t line = 1;
  std::string_view closing;  // what ends the string or comment we are in; empty outside
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (rest.front() == '\n') ++line;
    if (!closing.empty()) {
      if (closing.front() == '"' && rest.front() == '\\') {
        ++i;
        if (i < text.size() && text[i] == '\n') ++line;
      } else if (rest.starts_with(closing) || (closing.size() == 1 && rest.front() == '\n')) {
        i += closing.size() - 1;
        closing = {};
      }
      continue;
    }
    for (const std::string_view opening : {"\"\"\"", "'''", "\"", "'", "#"}) {
      if (!rest.starts_with(opening)) continue;
      closing = opening == "#" ? "\n" : opening;
      i += opening.size() - 1;
      break;
    }
    base::require(static_cast<unsigned char>(rest.front()) < 0x80,
                  "{}:{}: a character outside ASCII must stand in quotes", path, line);
  }
}

}  // namespace

std::string toml_place(const std::string& path, const toml::source_region& region) {
  return fmt::format("{}:{}", path, region.begin.line);
}

toml::table parse_toml(const std::string& text, const std::string& path) {
  require_ascii_outside_strings(text, path);
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    base::fail("{}: {}", toml_place(path, error.source()), error.description());
  }
}

}  // namespace plenum::io

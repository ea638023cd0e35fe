#include "plenum/base/check.h"

namespace plenum::base {
namespace {

std::string one_line(std::string_view message) {
  std::string line;
  for (const char c : message) {
    if (c == '\n') {
      line += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace

UserError::UserError(std::string_view message) : std::runtime_error(one_line(message)) {}

void throw_internal_error(const Condition& condition, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: {}", condition.file(), condition.line(), message));
}

}  // namespace plenum::base

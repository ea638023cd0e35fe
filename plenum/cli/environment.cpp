#include "plenum/cli/environment.h"

#include <cstdlib>
#include <string_view>

namespace plenum::cli {
namespace {

/// Empty where it is not set.
std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool color_is_welcome() {
  return variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

}  // namespace plenum::cli

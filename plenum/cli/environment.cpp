#include "plenum/cli/environment.h"

#include <cstdlib>

namespace plenum::cli {

bool color_is_welcome() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || *no_color == '\0';
}

}  // namespace plenum::cli

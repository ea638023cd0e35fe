#pragma once

#include <string>

namespace plenum::base {

/// What this binary was built from and what CMake found beside it. Empty means not found.
struct BuildInfo {
  std::string version;
  std::string compiler;
  std::string build_type;
  std::string sanitizers;
  std::string cuda_toolkit;
};

BuildInfo build_info();

}  // namespace plenum::base

#include "plenum/base/build_info.h"

#include <string_view>

#include "plenum_build_info.h"

namespace plenum::base {
namespace {

/// CMake's idea of a library that was not found.
std::string found_or_empty(std::string_view text) {
  return text.ends_with("NOTFOUND") ? std::string() : std::string(text);
}

}  // namespace

BuildInfo build_info() {
  return {.version = generated::kVersion,
          .compiler = generated::kCompiler,
          .build_type = generated::kBuildType,
          .sanitizers = generated::kSanitizers,
          .cuda_toolkit = found_or_empty(generated::kCudaToolkit)};
}

}  // namespace plenum::base

#include "plenum/base/build_info.h"

#include <string_view>

#include "plenum_build_info.h"

namespace plenum::base {
namespace {

/// CMake's idea of a library that was not found.
std::string found_or_empty(std::string_view text) {
  return text.ends_with("NOTFOUND") ? std::string() : std::string(text);
}

std::string mpi_description() {
  if (std::string_view(generated::kMpiFound) != "TRUE") return {};
  const std::string version = found_or_empty(generated::kMpi);
  return version.empty() ? "found" : version;
}

}  // namespace

BuildInfo build_info() {
  return {.version = generated::kVersion,
          .compiler = generated::kCompiler,
          .build_type = generated::kBuildType,
          .sanitizers = generated::kSanitizers,
          .mpi_library = mpi_description(),
          .cuda_toolkit = found_or_empty(generated::kCudaToolkit),
          .nccl_header = found_or_empty(generated::kNccl)};
}

}  // namespace plenum::base

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "plenum/base/check.h"

/// One input for the parser under test. Each fuzzer defines it; libFuzzer or tests/fuzz/driver.cpp calls it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace plenum::fuzz {

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Runs a parser on what may be nonsense: it may succeed or throw UserError with a message of one line.
/// Anything else ends the process as a finding.
template <typename Parse>
void parse_or_refuse(Parse&& parse) {
  try {
    std::forward<Parse>(parse)();
  } catch (const base::UserError& error) {
    const std::string_view message(error.what());
    if (message.empty() || message.find('\n') != std::string_view::npos) __builtin_trap();
  }
}

/// Bytes as a file in memory, for parsers that take a path.
class InputFile {
 public:
  explicit InputFile(std::string_view bytes) : descriptor_(::memfd_create("fuzz", 0)) {
    if (::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      __builtin_trap();
  }
  ~InputFile() {
    ::close(descriptor_);
    if (!link_.empty()) ::unlink(link_.c_str());
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

  /// A path that ends in `suffix`, for parsers that look at it.
  const std::string& path_with(const std::string& suffix) {
    link_ = "/tmp/plenum-fuzz-" + std::to_string(::getpid()) + suffix;
    ::unlink(link_.c_str());
    if (::symlink(path().c_str(), link_.c_str()) != 0) __builtin_trap();
    return link_;
  }

 private:
  int descriptor_;
  std::string link_;
};

}  // namespace plenum::fuzz

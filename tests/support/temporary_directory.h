#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <unistd.h>

namespace plenum::test {

/// A directory that vanishes with the test. In memory where that is possible: syncing to a disk is slow.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const bool has_memory = ::access("/dev/shm", W_OK) == 0;
    path_ = (has_memory ? std::string("/dev/shm") : std::filesystem::temp_directory_path().string()) +
            "/plenum-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary directory: " + path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  /// Writes a file and returns its path.
  std::string write(std::string_view name, std::string_view text) const {
    const std::string path = *this / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

 private:
  std::string path_;
};

}  // namespace plenum::test

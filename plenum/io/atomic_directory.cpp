#include "plenum/io/atomic_directory.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <sys/stat.h>

#include "plenum/base/check.h"
#include "plenum/io/append_file.h"
#include "plenum/io/checksum.h"
#include "plenum/io/file.h"

namespace plenum::io {
namespace {

namespace fs = std::filesystem;

// A block is checksummed and handed to the kernel while it lies in the cache.
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string replaced_name(const std::string& path) {
  return path + ".replaced";
}

void move(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  base::require(!error, "cannot rename {} to {}: {}", from, to, error.message());
}

}  // namespace

AtomicDirectory::AtomicDirectory(std::string path) : path_(std::move(path)) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  std::error_code error;
  fs::create_directories(parent_of(path_), error);
  base::require(!error, "cannot make the directory {}: {}", parent_of(path_), error.message());
  std::string pattern = path_ + ".partial-XXXXXX";
  base::require(::mkdtemp(pattern.data()) != nullptr, "cannot make the directory {}: {}", path_,
                std::strerror(errno));
  partial_path_ = std::move(pattern);
  ::chmod(partial_path_.c_str(), 0755);
}

AtomicDirectory::~AtomicDirectory() {
  if (partial_path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(partial_path_, ignored);
}

FileRecord AtomicDirectory::write(const std::string& name, base::FunctionRef<void(Sink)> produce) {
  AppendFile file(partial_path_ + "/" + name);
  Checksum checksum;
  const auto write_blocks = [&](std::string_view bytes) {
    while (!bytes.empty()) {
      const std::string_view block = bytes.substr(0, kBlockBytes);
      checksum.update(block);
      file.append(block);
      bytes.remove_prefix(block.size());
    }
  };
  produce(write_blocks);
  file.flush();
  file.sync();
  return {.name = name, .size_bytes = file.size(), .checksum = format_checksum(checksum.value())};
}

FileRecord AtomicDirectory::write(const std::string& name, std::string_view bytes) {
  return write(name, [&](Sink sink) { sink(bytes); });
}

void AtomicDirectory::commit(Replace replace) {
  sync_directory(partial_path_);
  std::error_code error;
  const bool is_taken =
      fs::exists(path_, error) && !(fs::is_directory(path_, error) && fs::is_empty(path_, error));
  base::require(!is_taken || replace == Replace::Yes, "{} is there already; move it or choose another name",
                path_);
  const std::string replaced = replaced_name(path_);
  if (is_taken) {
    base::require(!fs::exists(replaced, error), "{} is in the way; move it elsewhere", replaced);
    move(path_, replaced);
  }
  move(partial_path_, path_);
  partial_path_.clear();
  sync_directory(parent_of(path_));
  if (is_taken) fs::remove_all(replaced, error);
}

void restore_replaced(const std::string& path) {
  std::error_code error;
  const std::string replaced = replaced_name(path);
  if (!fs::exists(replaced, error)) return;
  if (fs::exists(path, error)) {
    fs::remove_all(replaced, error);
  } else {
    move(replaced, path);
  }
}

}  // namespace plenum::io

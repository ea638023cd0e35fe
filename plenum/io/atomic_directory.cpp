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

std::string replaced_name(const std::string& path) {
  return path + ".replaced";
}

}  // namespace

AtomicDirectory::AtomicDirectory(std::string path, Replace replace)
    : path_(std::move(path)), replace_(replace) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  require_free();
  const std::string parent = parent_directory(path_);
  std::error_code error;
  const bool is_new = fs::create_directories(parent, error);
  base::require(!error, "cannot make the directory {}: {}", parent, error.message());
  if (is_new) sync_directory(parent_directory(parent));
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

bool AtomicDirectory::require_free() const {
  std::error_code error;
  if (!fs::exists(path_, error)) return true;
  base::require(fs::is_directory(path_, error), "{} is not a directory; move it or choose another name",
                path_);
  if (fs::is_empty(path_, error)) return true;
  base::require(replace_ == Replace::Yes, "{} is there already; move it or choose another name", path_);
  const std::string replaced = replaced_name(path_);
  base::require(!fs::exists(replaced, error), "{} is in the way; move it elsewhere", replaced);
  return false;
}

void AtomicDirectory::commit() {
  sync_directory(partial_path_);
  const std::string replaced = replaced_name(path_);
  const bool is_free = require_free();
  if (!is_free) move_path(path_, replaced);
  move_path(partial_path_, path_);
  partial_path_.clear();
  sync_directory(parent_directory(path_));
  std::error_code ignored;
  if (!is_free) fs::remove_all(replaced, ignored);
}

void restore_replaced(const std::string& path) {
  std::error_code error;
  const std::string replaced = replaced_name(path);
  if (!fs::exists(replaced, error)) return;
  if (fs::exists(path, error)) {
    fs::remove_all(replaced, error);
  } else {
    move_path(replaced, path);
  }
}

}  // namespace plenum::io

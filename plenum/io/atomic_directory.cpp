#include "plenum/io/atomic_directory.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include "plenum/base/check.h"
#include "plenum/base/system_call.h"
#include "plenum/io/append_file.h"
#include "plenum/io/checksum.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"

namespace plenum::io {
namespace {

namespace fs = std::filesystem;

// A block is checksummed and handed to the kernel while it lies in the cache.
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

/// Makes `<path>.partial-<number>` with the first number that is free, and the permissions that the user's
/// new directories have.
std::string make_partial(const std::string& path) {
  for (int number = 0;; ++number) {
    std::string partial = fmt::format("{}.partial-{}", path, number);
    if (::mkdir(partial.c_str(), 0777) == 0) return partial;
    base::require_call(errno == EEXIST, "cannot make the directory {}", partial);
  }
}

}  // namespace

std::string replaced_name(const std::string& path) {
  return path + ".replaced";
}

void require_replaceable(const std::string& path, Replace replace,
                         std::span<const std::string_view> own_names) {
  constexpr std::size_t kMostNamed = 3;
  const std::vector<std::string> names = names_in(path);
  std::vector<std::string> others;
  for (const std::string& name : names) {
    if (std::ranges::find(own_names, name) == own_names.end()) others.push_back(name);
  }
  const std::size_t num_named = std::min(others.size(), kMostNamed);
  base::require(others.empty(),
                "{} is not replaced because it holds other files; move it or choose another name: {}{}", path,
                fmt::join(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(num_named), ", "),
                others.size() == num_named ? "" : fmt::format(" and {} more", others.size() - num_named));
  base::require(names.empty() || replace == Replace::Yes,
                "{} is there already; add --overwrite, or choose another name", path);
}

AtomicDirectory::AtomicDirectory(std::string path, Replace replace)
    : path_(std::move(path)), replace_(replace) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  if (replace_ == Replace::Yes && !path_exists(path_)) restore_replaced(path_);
  require_free();
  make_directories(parent_directory(path_));
  partial_path_ = make_partial(path_);
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
  if (!path_exists(path_)) return true;
  if (names_in(path_).empty()) return true;
  base::require(replace_ == Replace::Yes, "{} is there already; move it or choose another name", path_);
  const std::string replaced = replaced_name(path_);
  base::require(!path_exists(replaced), "{} is in the way; move it elsewhere", replaced);
  return false;
}

void AtomicDirectory::commit() {
  sync_directory(partial_path_);
  const std::string replaced = replaced_name(path_);
  const bool is_free = require_free();
  if (!is_free) move_path(path_, replaced);
  try {
    move_path(partial_path_, path_);
  } catch (const base::UserError&) {
    if (!is_free) move_path(replaced, path_);
    throw;
  }
  partial_path_.clear();
  sync_directory(parent_directory(path_));
  std::error_code ignored;
  if (!is_free) fs::remove_all(replaced, ignored);
}

void restore_replaced(const std::string& path) {
  const std::string replaced = replaced_name(path);
  if (!path_exists(replaced)) return;
  if (path_exists(path)) {
    std::error_code ignored;
    fs::remove_all(replaced, ignored);
  } else {
    move_path(replaced, path);
  }
}

}  // namespace plenum::io

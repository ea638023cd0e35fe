#include "plenum/io/directory.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "plenum/base/check.h"
#include "plenum/io/file.h"

namespace plenum::io {
namespace {

namespace fs = std::filesystem;

void require_no_error(const std::error_code& error, const char* action, const std::string& path) {
  base::require(!error, "cannot {} {}: {}", action, path, error.message());
}

/// The commonest mistake, in plainer words than the system has for it.
void require_no_file(const std::string& path) {
  std::error_code error;
  base::require(!fs::is_regular_file(path, error), "{} is a file, not a directory", path);
}

}  // namespace

bool path_exists(const std::string& path) {
  std::error_code error;
  const bool exists = fs::exists(path, error);
  require_no_error(error, "read", path);
  return exists;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::error_code error;
  // Of the name itself, because a link that leads nowhere is not found either if it is followed.
  if (fs::symlink_status(directory, error).type() == fs::file_type::not_found) return {};
  require_no_file(directory);
  std::vector<std::string> names;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  require_no_error(error, "list", directory);
  std::sort(names.begin(), names.end());
  return names;
}

void make_directories(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return;
  require_no_file(path);
  const std::string parent = parent_directory(path);
  if (parent != path) make_directories(parent);
  const bool is_new = fs::create_directory(path, error);
  require_no_error(error, "make the directory", path);
  if (is_new) sync_directory(parent);
}

}  // namespace plenum::io

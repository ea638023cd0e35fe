#include "plenum/data/corpus/dataset_shard.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "plenum/io/directory.h"

namespace plenum::data {
namespace {

constexpr std::string_view kPrefix = "shard-";

}  // namespace

std::string shard_name(std::uint64_t index) {
  return fmt::format("{}{}", kPrefix, index);
}

bool is_shard_name(std::string_view name) {
  constexpr std::size_t kMostDigits = 5;
  if (!name.starts_with(kPrefix)) return false;
  const std::string_view digits = name.substr(kPrefix.size());
  return !digits.empty() && digits.size() <= kMostDigits &&
         digits.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<std::string> shard_directories(const std::string& directory) {
  constexpr const char* kDescription = "/dataset.json";
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored) || io::path_exists(directory + kDescription))
    return {};
  std::vector<std::pair<unsigned long, std::string>> found;
  for (const std::string& name : io::names_in(directory)) {
    const std::string path = directory + "/" + name;
    if (is_shard_name(name) && io::path_exists(path + kDescription))
      found.emplace_back(std::stoul(name.substr(kPrefix.size())), path);
  }
  std::ranges::sort(found);
  std::vector<std::string> directories;
  for (auto& [number, path] : found) directories.push_back(std::move(path));
  return directories;
}

}  // namespace plenum::data

#include "plenum/data/text/source_files.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include <sys/stat.h>

#include "plenum/base/check.h"
#include "plenum/base/system_call.h"
#include "plenum/io/compressed_input.h"

namespace plenum::data {
namespace {

constexpr std::string_view kKnownEndings = ".txt, .jsonl, .csv or .tsv, each also with .gz or .zst behind";

std::optional<TextFormat> format_of(std::string_view path) {
  const std::string_view name = io::without_compression_suffix(path);
  if (name.ends_with(".txt")) return TextFormat::Lines;
  if (name.ends_with(".jsonl")) return TextFormat::JsonLines;
  if (name.ends_with(".csv")) return TextFormat::Csv;
  if (name.ends_with(".tsv")) return TextFormat::Tsv;
  return std::nullopt;
}

SourceFile describe(const std::string& path, TextFormat format) {
  struct stat info {};
  base::require_call(::stat(path.c_str(), &info) == 0, "cannot read {}", path);
  base::require(S_ISREG(info.st_mode), "cannot read {}: it is neither a file nor a directory", path);
  constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
  return {.path = path,
          .format = format,
          .size_bytes = static_cast<std::uint64_t>(info.st_size),
          .modified_ns = info.st_mtim.tv_sec * kNanosecondsPerSecond + info.st_mtim.tv_nsec};
}

std::vector<std::string> files_below(const std::string& directory) {
  std::vector<std::string> paths;
  try {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (entry.is_regular_file()) paths.push_back(entry.path().string());
    }
  } catch (const std::filesystem::filesystem_error& error) {
    base::fail("cannot list {}: {}", directory, error.code().message());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::uint64_t SourceFiles::total_bytes() const {
  std::uint64_t total = 0;
  for (const SourceFile& file : files) total += file.size_bytes;
  return total;
}

SourceFiles list_source_files(const std::vector<std::string>& inputs) {
  base::require(!inputs.empty(), "no input is given; name the files or directories of text to prepare");
  SourceFiles found;
  for (const std::string& input : inputs) {
    std::error_code ignored;
    if (std::filesystem::is_directory(input, ignored)) {
      for (const std::string& path : files_below(input)) {
        if (const auto format = format_of(path)) {
          found.files.push_back(describe(path, *format));
        } else {
          found.skipped.push_back(path);
        }
      }
      continue;
    }
    const auto format = format_of(input);
    const bool exists = std::filesystem::exists(input, ignored);
    base::require(exists, "cannot read {}: no such file or directory", input);
    base::require(format.has_value(), "cannot tell the format of {} by its name; rename it to {}", input,
                  kKnownEndings);
    found.files.push_back(describe(input, *format));
  }
  base::require(!found.files.empty(), "no text in {}; a file's name ends in {}", inputs.front(),
                kKnownEndings);
  std::set<std::string> known;
  for (const SourceFile& file : found.files) {
    base::require(known.insert(std::filesystem::weakly_canonical(file.path).string()).second,
                  "the file {} is given twice; name it once", file.path);
  }
  return found;
}

}  // namespace plenum::data

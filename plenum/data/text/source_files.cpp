#include "plenum/data/text/source_files.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "plenum/base/check.h"
#include "plenum/base/system_call.h"
#include "plenum/base/units.h"
#include "plenum/io/compressed_input.h"

namespace plenum::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKnownEndings = ".txt, .jsonl, .csv or .tsv, each also with .gz or .zst behind";

/// Which file or folder a path leads to, whatever its name.
using Identity = std::pair<dev_t, ino_t>;

struct stat status_of(const std::string& path) {
  struct stat info {};
  base::require_call(::stat(path.c_str(), &info) == 0, "cannot read {}", path);
  return info;
}

Identity identity_of(const struct stat& info) {
  return {info.st_dev, info.st_ino};
}

SourceFile describe(const std::string& path, TextFormat format) {
  const struct stat info = status_of(path);
  base::require(S_ISREG(info.st_mode), "cannot read {}: it is neither a file nor a directory", path);
  constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
  return {.path = path,
          .format = format,
          .size_bytes = static_cast<std::uint64_t>(info.st_size),
          .modified_ns = info.st_mtim.tv_sec * kNanosecondsPerSecond + info.st_mtim.tv_nsec};
}

/// Lists what lies in a directory and below.
class DirectoryWalk {
 public:
  /// Appends to `found` what is not read.
  DirectoryWalk(const std::string& directory, SourceFiles& found) : found_(found) {
    try {
      enter(directory);
      // Folders under their own names come before links to them, wherever the links stand.
      while (!links_.empty()) {
        const std::string link = *links_.begin();
        links_.erase(links_.begin());
        if (entered_.contains(identity_of(status_of(link)))) {
          found_.repeated.push_back(link);
        } else {
          enter(link);
        }
      }
    } catch (const fs::filesystem_error& error) {
      base::fail("cannot list {}: {}", error.path1().empty() ? directory : error.path1().string(),
                 error.code().message());
    }
    std::sort(paths_.begin(), paths_.end());
  }

  /// Regular files and links to such, in order of their paths.
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  void enter(const std::string& directory) {
    entered_.insert(identity_of(status_of(directory)));
    for (const auto& entry : fs::directory_iterator(directory)) {
      const std::string path = entry.path().string();
      std::error_code error;  // a circle of links leads nowhere, too
      const fs::file_status status = entry.status(error);
      if (fs::is_directory(status)) {
        if (entry.is_symlink()) {
          links_.insert(path);
        } else {
          enter(path);
        }
      } else if (fs::is_regular_file(status)) {
        paths_.push_back(path);
      } else if (entry.is_symlink() && !fs::exists(status)) {
        found_.dangling.push_back(path);
      } else {
        base::require(fs::status_known(status), "cannot read {}: {}", path, error.message());
        found_.special.push_back(path);
      }
    }
  }

  SourceFiles& found_;
  std::vector<std::string> paths_;
  std::set<std::string> links_;  ///< to folders, not followed yet
  std::set<Identity> entered_;
};

/// Whether a file is a tokenizer's: no text, for all its name.
bool is_vocabulary(const fs::path& path) {
  std::error_code ignored;
  return path.filename() == "vocab.txt" &&
         (fs::exists(path.parent_path() / "tokenizer.json", ignored) ||
          fs::exists(path.parent_path() / "tokenizer_config.json", ignored));
}

/// Gathers files, each once.
class SourceGatherer {
 public:
  explicit SourceGatherer(SourceFiles& found) : found_(found) {}

  void add_given(const std::string& path) {
    std::error_code ignored;
    base::require(fs::exists(path, ignored), "cannot read {}: no such file or directory", path);
    const auto format = format_of(path);
    base::require(format.has_value(), "cannot tell the format of {} by its name; rename it to {}", path,
                  kKnownEndings);
    base::require(add(path, *format, true), "the file {} is given twice; name it once", path);
  }

  void add_directory(const std::string& directory) {
    const DirectoryWalk walk(directory, found_);
    for (const std::string& path : walk.paths()) {
      const auto format = format_of(path);
      if (!format) {
        found_.unknown.push_back(path);
      } else if (is_vocabulary(path)) {
        found_.vocabularies.push_back(path);
      } else if (!add(path, *format, false)) {
        found_.repeated.push_back(path);
      }
    }
  }

 private:
  /// False if the file is there already. Throws UserError if it was named itself.
  bool add(const std::string& path, TextFormat format, bool is_given) {
    const auto [known, is_new] = known_.emplace(identity_of(status_of(path)), is_given);
    base::require(is_new || !known->second, "the file {} is given twice; name it once", path);
    if (is_new) found_.files.push_back(describe(path, format));
    return is_new;
  }

  SourceFiles& found_;
  std::map<Identity, bool> known_;  ///< whether the file was named itself
};

/// "skipping 3 pipes, such as in/a".
std::string remark(std::string_view verb, const std::vector<std::string>& paths, std::string_view one,
                   std::string_view several) {
  const bool is_one = paths.size() == 1;
  return fmt::format("{} {} {}{} {}", verb, base::format_count(paths.size()), is_one ? one : several,
                     is_one ? ":" : ", such as", paths.front());
}

}  // namespace

std::optional<TextFormat> format_of(std::string_view path) {
  const std::string_view name = io::without_compression_suffix(path);
  if (name.ends_with(".txt")) return TextFormat::Lines;
  if (name.ends_with(".jsonl")) return TextFormat::JsonLines;
  if (name.ends_with(".csv")) return TextFormat::Csv;
  if (name.ends_with(".tsv")) return TextFormat::Tsv;
  return std::nullopt;
}

std::uint64_t SourceFiles::total_bytes() const {
  std::uint64_t total = 0;
  for (const SourceFile& file : files) total += file.size_bytes;
  return total;
}

std::vector<std::string> SourceFiles::remarks() const {
  std::vector<std::string> lines;
  if (!unknown.empty())
    lines.push_back(remark("skipping", unknown, "file of unknown format", "files of unknown format"));
  if (!vocabularies.empty()) {
    lines.push_back(
        remark("skipping", vocabularies, "vocabulary of a tokenizer", "vocabularies of tokenizers"));
  }
  if (!dangling.empty())
    lines.push_back(remark("skipping", dangling, "link that leads nowhere", "links that lead nowhere"));
  if (!special.empty())
    lines.push_back(remark("skipping", special, "pipe, socket or device", "pipes, sockets or devices"));
  if (!repeated.empty()) {
    lines.push_back(remark("reading once, not twice,", repeated, "file or folder with two names",
                           "files or folders with two names"));
  }
  return lines;
}

SourceFiles list_source_files(const std::vector<std::string>& inputs) {
  base::require(!inputs.empty(), "no input is given; name the files or directories of text to prepare");
  SourceFiles found;
  SourceGatherer gatherer(found);
  for (const std::string& input : inputs) {
    std::error_code ignored;
    if (fs::is_directory(input, ignored)) {
      gatherer.add_directory(input);
    } else {
      gatherer.add_given(input);
    }
  }
  base::require(!found.files.empty(), "no text in {}; a file's name ends in {}", inputs.front(),
                kKnownEndings);
  return found;
}

void require_unchanged(const std::vector<SourceFile>& files) {
  for (const SourceFile& file : files) {
    const SourceFile now = describe(file.path, file.format);
    base::require(
        now.size_bytes == file.size_bytes && now.modified_ns == file.modified_ns,
        "{} changed while it was read; wait until it is complete and prepare again: {} bytes before, {} now",
        file.path, file.size_bytes, now.size_bytes);
  }
}

}  // namespace plenum::data

#include "plenum/data/corpus/partial_directory.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/data/corpus/dataset_description.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"

namespace plenum::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockName = "lock";
constexpr const char* kJournalName = "journal.json";

}  // namespace

PartialDirectory::PartialDirectory(std::string output, std::string fingerprint, base::Progress& progress)
    : output_(std::move(output)), path_(output_ + ".partial"), fingerprint_(std::move(fingerprint)) {
  std::error_code error;
  const bool existed = fs::exists(path_);
  base::require(!existed || fs::exists(path_ + "/" + kLockName) || fs::is_empty(path_, error),
                "{} is in the way and was not left by plenum prepare; move it or choose another --output",
                path_);
  fs::create_directories(path_, error);
  base::require(!error, "cannot make the directory {}: {}", path_, error.message());
  lock_.emplace(
      path_ + "/" + kLockName,
      fmt::format("another run of plenum prepare is writing to {}; wait for it or choose another --output",
                  path_));
  if (!existed) return;
  const std::string journal_path = path_ + "/" + kJournalName;
  if (fs::exists(journal_path)) {
    const nlohmann::json journal = nlohmann::json::parse(io::read_file(journal_path), nullptr, false);
    if (journal.is_object() && journal.value("fingerprint", "") == fingerprint_) {
      state_ = journal.at("state");
      has_record_ = true;
      return;
    }
    progress.note("starting clean: an unfinished run in " + path_ + " had other input or options");
  } else {
    progress.note("starting clean: an unfinished run in " + path_ + " had not come far enough");
  }
  clear();
}

PartialDirectory::~PartialDirectory() {
  if (has_record_ || path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void PartialDirectory::clear() {
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (entry.path().filename() != kLockName) fs::remove_all(entry.path());
  }
}

void PartialDirectory::record(const nlohmann::json& state) {
  const nlohmann::json journal = {{"fingerprint", fingerprint_}, {"state", state}};
  io::write_file(path_ + "/" + kJournalName, journal.dump());
  has_record_ = true;
}

void PartialDirectory::publish(std::span<const std::string> names, io::Replace replace) {
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    const bool stays =
        name == kLockName || name == kJournalName || std::ranges::find(names, name) != names.end();
    if (!stays) fs::remove_all(entry.path());
  }
  io::sync_directory(path_);
  const std::string replaced = io::replaced_name(output_);
  // What a crash between the two moves left: the old dataset, which the new one is about to replace.
  if (fs::exists(replaced)) {
    require_replaceable_dataset(replaced, io::Replace::Yes);
    fs::remove_all(replaced);
  }
  require_replaceable_dataset(output_, replace);
  const bool replaces = fs::exists(output_) && !fs::is_empty(output_);
  if (replaces) io::move_path(output_, replaced);
  io::move_path(path_, output_);
  path_.clear();
  io::sync_directory(io::parent_directory(output_));
  fs::remove(output_ + "/" + kJournalName);
  fs::remove(output_ + "/" + kLockName);
  if (replaces) fs::remove_all(replaced);
}

void require_replaceable_dataset(const std::string& path, io::Replace replace) {
  std::vector<std::string_view> own(kDatasetFileNames.begin(), kDatasetFileNames.end());
  own.insert(own.end(), {kLockName, kJournalName});  // a crash may leave them in a whole dataset
  const std::vector<std::string> names = io::names_in(path);
  for (const std::string& name : names) {
    if (!is_shard_name(name)) continue;
    io::require_replaceable(path + "/" + name, io::Replace::Yes, kDatasetFileNames);
    own.push_back(name);
  }
  io::require_replaceable(path, replace, own);
}

}  // namespace plenum::data

#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "plenum/base/progress.h"
#include "plenum/io/atomic_directory.h"
#include "plenum/io/lock_file.h"

namespace plenum::data {

/// The directory `<output>.partial` in which a dataset grows, with a journal of how far it has come. It holds
/// a lock while it exists, so that two runs do not write to one place. Nothing in it is lost by a crash that
/// the journal speaks of; without a journal there is nothing to keep, and it is removed when it is destroyed.
class PartialDirectory {
 public:
  /// Takes up what an earlier run of the same fingerprint left, or starts clean and notes why. Throws
  /// UserError when another run is at work there, or when the directory is not one of these.
  PartialDirectory(std::string output, std::string fingerprint, base::Progress& progress);
  ~PartialDirectory();
  PartialDirectory(const PartialDirectory&) = delete;
  PartialDirectory& operator=(const PartialDirectory&) = delete;

  const std::string& path() const { return path_; }
  /// What the last record() of the earlier run said; null after a clean start.
  const nlohmann::json& state() const { return state_; }

  /// Overwrites the journal, at once or not at all. Everything that `state` speaks of must be on the disk.
  void record(const nlohmann::json& state);

  /// Whether there is something for a later run to take up.
  bool has_record() const { return has_record_; }
  /// What was recorded is of no use any more.
  void forget() { has_record_ = false; }

  /// Removes all but `names` and moves the directory to its final place. Throws UserError if something
  /// lies there that is not to be replaced, or holds files of other names.
  void publish(std::span<const std::string> names, io::Replace replace);

 private:
  void clear();

  std::string output_;
  std::string path_;
  std::string fingerprint_;
  std::optional<io::LockFile> lock_;  ///< taken once the directory is there
  nlohmann::json state_;
  bool has_record_ = false;
};

/// Throws UserError unless a new dataset may take the place of what lies at `path`: a dataset, whole or in
/// shards, that is to be replaced and has no files but its own.
void require_replaceable_dataset(const std::string& path, io::Replace replace);

}  // namespace plenum::data

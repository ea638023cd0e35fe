#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "plenum/base/progress.h"
#include "plenum/io/lock_file.h"

namespace plenum::data {

/// The directory `<output>.partial` in which a dataset grows, with a journal of how far it has come. It holds
/// a lock while it exists, so that two runs do not write to one place. Nothing in it is lost by a crash that
/// the journal speaks of.
class PartialDirectory {
 public:
  /// Takes up what an earlier run of the same fingerprint left, or starts clean and notes why. Throws
  /// UserError when another run is at work there, or when the directory is not one of these.
  PartialDirectory(std::string output, std::string fingerprint, base::Progress& progress);

  const std::string& path() const { return path_; }
  /// What the last record() of the earlier run said; null after a clean start.
  const nlohmann::json& state() const { return state_; }

  /// Overwrites the journal, at once or not at all. Everything that `state` speaks of must be on the disk.
  void record(const nlohmann::json& state);

  /// Removes all files but `names` and moves the directory to its final place, replacing what is there.
  void publish(const std::vector<std::string>& names);

 private:
  void clear();

  std::string output_;
  std::string path_;
  std::string fingerprint_;
  std::optional<io::LockFile> lock_;  ///< taken once the directory is there
  nlohmann::json state_;
};

}  // namespace plenum::data

#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "plenum/control/launch.h"

namespace plenum::cli {

/// Where a process says how its part of a run goes: the first, and one on its own, on standard error, others
/// in a file of the run directory.
class RankLog {
 public:
  /// Appends to the file of an earlier process with the same rank. Standard error takes its place where it
  /// cannot be opened, or where this process was started by Plenum, which has sent that there.
  RankLog(const std::string& run_directory, const control::Launch& launch);

  std::FILE* stream() const { return file_ ? file_.get() : stderr; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace plenum::cli

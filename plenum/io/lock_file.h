#pragma once

#include <string>
#include <string_view>

namespace plenum::io {

/// A file that one process at a time holds, until it goes out of scope or the process ends, however it ends.
/// The file stays.
class LockFile {
 public:
  /// Throws UserError with `if_taken` when another holds it, and one naming the path when it cannot be made.
  LockFile(const std::string& path, std::string_view if_taken);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

 private:
  int descriptor_ = -1;
};

/// Whether a process of this machine holds the lock, as far as this one may know. Takes no lock itself, so it
/// is in nobody's way.
bool is_lock_held(const std::string& path);

}  // namespace plenum::io

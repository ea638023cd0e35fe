#include "plenum/io/lock_file.h"

#include <cerrno>
#include <cstdint>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plenum/base/check.h"
#include "plenum/base/system_call.h"

namespace plenum::io {

LockFile::LockFile(const std::string& path, std::string_view if_taken)
    : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  base::require_call(descriptor_ >= 0, "cannot write {}", path);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(descriptor_);
  throw base::UserError(if_taken);
}

LockFile::~LockFile() {
  ::close(descriptor_);
}

bool is_lock_held(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  // "1: FLOCK  ADVISORY  WRITE 4242 08:01:131 0 EOF". The inode tells files apart; the device before it is
  // not the one that stat() gives on file systems with subvolumes or layers.
  const std::string place = fmt::format(":{} ", static_cast<std::uint64_t>(status.st_ino));
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    if (line.find(" FLOCK ") != std::string::npos && line.find(place) != std::string::npos) return true;
  }
  return false;
}

}  // namespace plenum::io

#include "plenum/io/lock_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
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

}  // namespace plenum::io

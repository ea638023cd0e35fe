#include "plenum/io/placed_file.h"

#include <cerrno>
#include <cstddef>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plenum/base/check.h"
#include "plenum/base/system_call.h"
#include "plenum/io/write_all.h"

namespace plenum::io {
namespace {

// A piece is checksummed and handed to the kernel while it lies in the cache.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

}  // namespace

void PlacedFile::make(const std::string& path, std::uint64_t num_bytes) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  base::require_call(descriptor >= 0, "cannot write {}", path);
  const bool is_made = ::ftruncate(descriptor, static_cast<off_t>(num_bytes)) == 0;
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  base::require_call(is_made, "cannot write {}", path);
}

PlacedFile::PlacedFile(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  base::require_call(descriptor_ >= 0, "cannot write {}", path_);
  struct stat info {};
  const bool is_known = ::fstat(descriptor_, &info) == 0;
  if (!is_known) {
    const int reason = errno;
    ::close(descriptor_);
    errno = reason;
  }
  base::require_call(is_known, "cannot write {}", path_);
  size_bytes_ = static_cast<std::uint64_t>(info.st_size);
  sums_ = BlockSums(size_bytes_);
}

PlacedFile::~PlacedFile() {
  ::close(descriptor_);
}

void PlacedFile::write(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPieceBytes);
    sums_.add(offset, piece);
    write_all_at(descriptor_, offset, piece, path_);
    offset += piece.size();
    written_bytes_ += piece.size();
    bytes.remove_prefix(piece.size());
  }
}

void PlacedFile::sync() const {
  base::require_call(::fsync(descriptor_) == 0, "cannot write {}", path_);
}

}  // namespace plenum::io

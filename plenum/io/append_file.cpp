#include "plenum/io/append_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plenum/base/check.h"
#include "plenum/base/system_call.h"
#include "plenum/io/write_all.h"

namespace plenum::io {
namespace {

constexpr std::size_t kAppendBufferBytes = std::size_t{1} << 20;
constexpr std::size_t kWorthACallBytes = std::size_t{1}
                                         << 16;  ///< a copy costs more than a call from here on

}  // namespace

AppendFile::AppendFile(std::string path, std::uint64_t size) : path_(std::move(path)), size_(size) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  base::require_call(descriptor_ >= 0, "cannot write {}", path_);
  struct stat info {};
  const bool known = ::fstat(descriptor_, &info) == 0;
  const bool long_enough = known && static_cast<std::uint64_t>(info.st_size) >= size;
  const bool ready = long_enough && ::ftruncate(descriptor_, static_cast<off_t>(size)) == 0 &&
                     ::lseek(descriptor_, static_cast<off_t>(size), SEEK_SET) >= 0;
  if (!ready) {
    const std::string why = known && !long_enough
                                ? "it is shorter than an earlier run left it; remove its directory"
                                : std::strerror(errno);
    ::close(descriptor_);
    base::fail("cannot write {}: {}", path_, why);
  }
}

AppendFile::~AppendFile() {
  ::close(descriptor_);
}

void AppendFile::append(std::string_view bytes) {
  if (bytes.size() >= kWorthACallBytes) {
    flush();
    write_or_cut(bytes);
    size_ += bytes.size();
    return;
  }
  buffer_.append(bytes);
  size_ += bytes.size();
  if (buffer_.size() >= kAppendBufferBytes) flush();
}

void AppendFile::flush() {
  write_or_cut(buffer_);
  buffer_.clear();
}

/// A full disk may take a part of the bytes: it is cut off again, so that the next try does not write behind
/// it.
void AppendFile::write_or_cut(std::string_view bytes) {
  const auto begin = static_cast<off_t>(size_ - buffer_.size());
  try {
    write_all(descriptor_, bytes, path_);
  } catch (const base::UserError&) {
    base::require_call(::ftruncate(descriptor_, begin) == 0 && ::lseek(descriptor_, begin, SEEK_SET) >= 0,
                       "cannot cut {} back to what is whole", path_);
    throw;
  }
}

void AppendFile::overwrite(std::uint64_t offset, std::string_view bytes) {
  base::check(offset + bytes.size() <= size_ - buffer_.size(), "what is overwritten is not there: {}", path_);
  write_all_at(descriptor_, offset, bytes, path_);
}

void AppendFile::sync() const {
  base::require_call(::fsync(descriptor_) == 0, "cannot write {}", path_);
}

void AppendFile::move_tail(std::uint64_t first, AppendFile& target) {
  base::check(first <= size_, "tail begins after the end: {}", path_);
  flush();
  std::string chunk;
  for (std::uint64_t at = first; at < size_;) {
    chunk.resize(std::min<std::uint64_t>(kAppendBufferBytes, size_ - at));
    const ssize_t count = ::pread(descriptor_, chunk.data(), chunk.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    base::require_call(count >= 0, "cannot read {}", path_);
    base::require(count > 0, "cannot read {}: it was cut meanwhile", path_);
    target.append(std::string_view(chunk).substr(0, static_cast<std::size_t>(count)));
    at += static_cast<std::uint64_t>(count);
  }
  const bool cut = ::ftruncate(descriptor_, static_cast<off_t>(first)) == 0 &&
                   ::lseek(descriptor_, static_cast<off_t>(first), SEEK_SET) >= 0;
  base::require_call(cut, "cannot write {}", path_);
  size_ = first;
}

}  // namespace plenum::io

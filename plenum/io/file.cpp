#include "plenum/io/file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plenum/base/check.h"
#include "plenum/base/system_call.h"
#include "plenum/io/write_all.h"

namespace plenum::io {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

/// A descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : value_(::open(path.c_str(), flags | O_CLOEXEC)) {
    base::require_call(value_ >= 0, "cannot open {}", path);
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

std::size_t regular_file_size(const Descriptor& file, const std::string& path) {
  struct stat info {};
  base::require_call(::fstat(file.get(), &info) == 0, "cannot read {}", path);
  base::require(!S_ISDIR(info.st_mode), "cannot read {}: it is a directory", path);
  return static_cast<std::size_t>(info.st_size);
}

}  // namespace

std::string read_file(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  std::string text;
  text.reserve(regular_file_size(file, path));
  char chunk[1 << 16];
  while (true) {
    const ssize_t count = ::read(file.get(), chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    base::require_call(count >= 0, "cannot read {}", path);
    if (count == 0) return text;
    text.append(chunk, static_cast<std::size_t>(count));
  }
}

AtomicFile::AtomicFile(const std::string& path, Readers readers) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  path_ = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored).string() : path;
  // Renaming over a device or a pipe would replace it.
  const fs::file_status status = fs::status(path_, ignored);
  base::require(!fs::exists(status) || fs::is_regular_file(status),
                "cannot write {}: it is not a regular file", path);
  const mode_t mode = readers == Readers::Owner ? 0600 : 0666;
  for (int number = 0; descriptor_ < 0; ++number) {
    partial_path_ = fmt::format("{}.partial-{}", path_, number);
    descriptor_ = ::open(partial_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    base::require_call(descriptor_ >= 0 || errno == EEXIST, "cannot write {}", path_);
  }
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(partial_path_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void AtomicFile::write(std::string_view text) {
  base::check(descriptor_ >= 0, "file is written after commit: {}", path_);
  buffer_.append(text);
  if (buffer_.size() >= kBufferBytes) flush();
}

void AtomicFile::overwrite(std::uint64_t offset, std::string_view text) {
  base::check(descriptor_ >= 0, "file is written after commit: {}", path_);
  flush();
  write_all_at(descriptor_, offset, text, path_);
}

void AtomicFile::flush() {
  write_all(descriptor_, buffer_, path_);
  buffer_.clear();
}

void AtomicFile::commit() {
  flush();
  base::require_call(::fsync(descriptor_) == 0, "cannot write {}", path_);
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0 || std::rename(partial_path_.c_str(), path_.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    ::unlink(partial_path_.c_str());
    base::fail("cannot write {}: {}", path_, why);
  }
  sync_directory(parent_directory(path_));
}

void write_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

MappedFile::MappedFile(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  size_ = regular_file_size(file, path);
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
  base::require_call(address != MAP_FAILED, "cannot map {}", path);
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void sync_directory(const std::string& path) {
  const Descriptor directory(path, O_RDONLY | O_DIRECTORY);
  base::require_call(::fsync(directory.get()) == 0, "cannot sync {}", path);
}

std::string parent_directory(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

void move_path(const std::string& from, const std::string& to) {
  base::require_call(std::rename(from.c_str(), to.c_str()) == 0, "cannot rename {} to {}", from, to);
}

}  // namespace plenum::io

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plenum::io {

/// The whole of a file. Throws UserError naming the file and the reason.
std::string read_file(const std::string& path);

/// Who may read a new file: whom the process's umask allows, or its owner alone, as befits a secret.
enum class Readers { Everyone, Owner };

/// A file that appears under its name whole or not at all: bytes go to `<path>.partial-…`, and commit() syncs
/// and renames it. Destroyed without commit() it leaves nothing. Every failure (a full disk above all) throws
/// UserError.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path, Readers readers = Readers::Everyone);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// What was written there before, for a header that is known at the end only.
  void overwrite(std::uint64_t offset, std::string_view text);
  void commit();

 private:
  void flush();

  std::string path_;
  std::string partial_path_;
  int descriptor_ = -1;
  std::string buffer_;
};

/// Writes `text` to `path` through AtomicFile.
void write_file(const std::string& path, std::string_view text);

/// A file mapped for reading. An empty file gives an empty span.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Flushes a directory's entries to disk, so that a rename in it survives a crash.
void sync_directory(const std::string& path);

/// The directory in which a path lies; "." for a bare name.
std::string parent_directory(const std::string& path);

/// Renames a file or directory within a file system. Throws UserError.
void move_path(const std::string& from, const std::string& to);

}  // namespace plenum::io

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plenum::io {

/// A file that grows at its end and can be cut back, for output that a later run takes up again. Every
/// failure (a full disk above all) throws UserError naming the file; what had been synced before stays.
class AppendFile {
 public:
  /// Opens or creates `path` and cuts it to its first `size` bytes. Throws UserError when fewer are there.
  explicit AppendFile(std::string path, std::uint64_t size = 0);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void append(std::string_view bytes);

  /// Appends values as they lie in memory (little-endian).
  template <typename Value>
  void append_values(std::span<const Value> values) {
    append(std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
  }
  template <typename Value>
  void append_value(const Value& value) {
    append_values(std::span<const Value>(&value, 1));
  }

  /// The bytes appended so far, with those that are still in memory.
  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

  /// Appends everything from byte `first` on to `target` and cuts it off here.
  void move_tail(std::uint64_t first, AppendFile& target);

  /// Hands everything to the kernel, so that readers of the path see it. Where that fails nothing of it is in
  /// the file, and it can be tried again.
  void flush();
  /// Returns when everything that was flushed before is on the disk. Another thread may append meanwhile.
  void sync() const;
  /// Overwrites bytes that were flushed before.
  void overwrite(std::uint64_t offset, std::string_view bytes);

 private:
  void write_or_cut(std::string_view bytes);

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::string buffer_;
};

}  // namespace plenum::io

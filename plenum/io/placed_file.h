#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plenum/io/block_sums.h"

namespace plenum::io {

/// A file whose size is known beforehand, written in parts at their places: by one process, or by several at
/// the same time. Every failure (a full disk above all) throws UserError naming the file.
class PlacedFile {
 public:
  /// Makes the file, of so many zeros.
  static void make(const std::string& path, std::uint64_t num_bytes);

  /// Opens one that was made.
  explicit PlacedFile(std::string path);
  ~PlacedFile();
  PlacedFile(const PlacedFile&) = delete;
  PlacedFile& operator=(const PlacedFile&) = delete;

  /// Overwrites what lies at `offset`. Whole words of four bytes, but at the file's end; every byte once.
  void write(std::uint64_t offset, std::string_view bytes);
  /// Returns when everything that was written here is on the disk.
  void sync() const;

  std::uint64_t size_bytes() const { return size_bytes_; }
  /// Bytes that were written here.
  std::uint64_t written_bytes() const { return written_bytes_; }
  /// Of them alone: those of all who write the file add up to the file's.
  const BlockSums& sums() const { return sums_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_bytes_ = 0;
  std::uint64_t written_bytes_ = 0;
  BlockSums sums_{0};
};

}  // namespace plenum::io

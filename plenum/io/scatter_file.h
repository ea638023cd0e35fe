#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plenum::io {

/// Writes fixed-size records grouped by bucket, each group in order of arrival: a stable counting sort on
/// disk, in a bounded amount of memory whatever the number of records. The bucket sizes are known beforehand.
class ScatterFile {
 public:
  /// Creates `path` anew: `header`, then room for bucket_counts[b] records of bucket b, for each b in turn.
  ScatterFile(std::string path, std::string_view header, std::size_t record_bytes,
              const std::vector<std::uint64_t>& bucket_counts);
  ~ScatterFile();
  ScatterFile(const ScatterFile&) = delete;
  ScatterFile& operator=(const ScatterFile&) = delete;

  /// Places the next records of `bucket`. Their size is a multiple of the record size.
  void append(std::size_t bucket, std::string_view records);

  /// Checks that every bucket is full and hands everything to the kernel, so that readers of the path see it.
  void flush();
  /// Overwrites the header and returns when everything is on the disk. Comes after flush().
  void finish(std::string_view header);

 private:
  struct Bucket {
    std::uint64_t offset;  ///< of the next byte to write
    std::uint64_t end;
    std::string waiting;
  };

  void flush_bucket(Bucket& bucket);

  std::string path_;
  int descriptor_ = -1;
  std::size_t record_bytes_;
  std::size_t bucket_buffer_bytes_;
  std::vector<Bucket> buckets_;
};

}  // namespace plenum::io

#include "plenum/io/scatter_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "plenum/base/check.h"
#include "plenum/base/system_call.h"
#include "plenum/io/write_all.h"

namespace plenum::io {
namespace {

/// All buckets together hold at most about this much back.
constexpr std::size_t kScatterBufferBytes = std::size_t{1} << 25;
constexpr std::size_t kLargestBucketBuffer = std::size_t{1} << 16;

}  // namespace

ScatterFile::ScatterFile(std::string path, std::string_view header, std::size_t record_bytes,
                         const std::vector<std::uint64_t>& bucket_counts)
    : path_(std::move(path)), record_bytes_(record_bytes) {
  const std::size_t share = kScatterBufferBytes / std::max<std::size_t>(1, bucket_counts.size());
  bucket_buffer_bytes_ = std::clamp(share, record_bytes, kLargestBucketBuffer);
  std::uint64_t offset = header.size();
  buckets_.reserve(bucket_counts.size());
  for (const std::uint64_t count : bucket_counts) {
    buckets_.push_back({.offset = offset, .end = offset + count * record_bytes, .waiting = {}});
    offset += count * record_bytes;
  }
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  base::require_call(descriptor_ >= 0, "cannot write {}", path_);
  write_all_at(descriptor_, 0, header, path_);
}

ScatterFile::~ScatterFile() {
  ::close(descriptor_);
}

void ScatterFile::append(std::size_t bucket_index, std::string_view records) {
  Bucket& bucket = buckets_[bucket_index];
  bucket.waiting.append(records);
  if (bucket.waiting.size() >= bucket_buffer_bytes_) flush_bucket(bucket);
}

void ScatterFile::flush_bucket(Bucket& bucket) {
  base::check(bucket.offset + bucket.waiting.size() <= bucket.end, "bucket overflows: {}", path_);
  write_all_at(descriptor_, bucket.offset, bucket.waiting, path_);
  bucket.offset += bucket.waiting.size();
  bucket.waiting.clear();
}

void ScatterFile::flush() {
  for (Bucket& bucket : buckets_) {
    flush_bucket(bucket);
    base::check(bucket.offset == bucket.end, "bucket is not full: {}", path_);
  }
}

void ScatterFile::finish(std::string_view header) {
  write_all_at(descriptor_, 0, header, path_);
  base::require_call(::fsync(descriptor_) == 0, "cannot write {}", path_);
}

}  // namespace plenum::io

#include "plenum/io/compressed_input.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "plenum/base/check.h"
#include "plenum/base/system_call.h"

namespace plenum::io {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 18;

/// The bytes of a file or pipe, in order.
class RawFile {
 public:
  explicit RawFile(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    base::require_call(descriptor_ >= 0, "cannot open {}", path);
    struct stat info {};
    const bool readable = ::fstat(descriptor_, &info) == 0 && !S_ISDIR(info.st_mode);
    if (!readable) {
      ::close(descriptor_);
      base::fail("cannot read {}: it is a directory", path);
    }
    size_ = S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0;
  }
  ~RawFile() { ::close(descriptor_); }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  std::size_t read(char* out, std::size_t capacity) {
    while (true) {
      const ssize_t count = ::read(descriptor_, out, capacity);
      if (count < 0 && errno == EINTR) continue;
      base::require_call(count >= 0, "cannot read {}", path_);
      position_ += static_cast<std::uint64_t>(count);
      return static_cast<std::size_t>(count);
    }
  }

  void seek(std::uint64_t position) {
    base::require_call(::lseek(descriptor_, static_cast<off_t>(position), SEEK_SET) >= 0, "cannot seek in {}",
                       path_);
    position_ = position;
  }

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  std::uint64_t position() const { return position_; }

 private:
  std::string path_;
  int descriptor_;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace

class CompressedInput::Decoder {
 public:
  explicit Decoder(const std::string& path) : file_(path) {}
  virtual ~Decoder() = default;

  /// The next bytes, at least one unless the end is reached.
  virtual std::size_t read(char* out, std::size_t capacity) = 0;

  /// Tries to move ahead without unpacking; returns how many bytes that covered.
  virtual std::uint64_t jump(std::uint64_t) { return 0; }

  std::uint64_t file_position() const { return file_.position(); }

 protected:
  RawFile file_;
};

namespace {

class PlainDecoder final : public CompressedInput::Decoder {
 public:
  using Decoder::Decoder;
  std::size_t read(char* out, std::size_t capacity) override { return file_.read(out, capacity); }
  std::uint64_t jump(std::uint64_t count) override {
    const std::uint64_t step = std::min(count, file_.size() - std::min(file_.size(), file_.position()));
    if (step > 0) file_.seek(file_.position() + step);  // a pipe, of size 0, does not seek
    return step;
  }
};

class GzipDecoder final : public CompressedInput::Decoder {
 public:
  explicit GzipDecoder(const std::string& path) : Decoder(path), chunk_(kChunkBytes) {
    constexpr int kGzipOnly = 16;
    base::check(inflateInit2(&stream_, MAX_WBITS + kGzipOnly) == Z_OK, "zlib does not start");
  }
  ~GzipDecoder() override { inflateEnd(&stream_); }

  std::size_t read(char* out, std::size_t capacity) override {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(capacity, 1U << 30));
    const uInt wanted = stream_.avail_out;
    while (stream_.avail_out == wanted) {
      if (stream_.avail_in == 0) {
        stream_.next_in = reinterpret_cast<Bytef*>(chunk_.data());
        stream_.avail_in = static_cast<uInt>(file_.read(chunk_.data(), chunk_.size()));
        if (stream_.avail_in == 0) {
          base::require(!inside_member_,
                        "{}: the gzip data end in the middle, at byte {}; the file is truncated",
                        file_.path(), file_.position());
          return 0;
        }
      }
      inside_member_ = true;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        inside_member_ = false;
        inflateReset(&stream_);
        continue;
      }
      base::require(status == Z_OK || status == Z_BUF_ERROR, "{}: the gzip data are damaged at byte {}: {}",
                    file_.path(), file_.position() - stream_.avail_in,
                    stream_.msg != nullptr ? stream_.msg : "unreadable");
    }
    return wanted - stream_.avail_out;
  }

 private:
  std::vector<char> chunk_;
  z_stream stream_{};
  bool inside_member_ = false;
};

class ZstdDecoder final : public CompressedInput::Decoder {
 public:
  explicit ZstdDecoder(const std::string& path)
      : Decoder(path), chunk_(kChunkBytes), stream_(ZSTD_createDStream(), &ZSTD_freeDStream) {
    base::check(stream_ != nullptr, "zstd does not start");
  }

  std::size_t read(char* out, std::size_t capacity) override {
    ZSTD_outBuffer output{out, capacity, 0};
    while (output.pos == 0) {
      if (input_.pos == input_.size && !more_to_flush_) {
        input_ = {chunk_.data(), file_.read(chunk_.data(), chunk_.size()), 0};
        if (input_.size == 0) {
          base::require(!inside_frame_,
                        "{}: the zstd data end in the middle, at byte {}; the file is truncated",
                        file_.path(), file_.position());
          return 0;
        }
      }
      const std::size_t status = ZSTD_decompressStream(stream_.get(), &output, &input_);
      base::require(ZSTD_isError(status) == 0, "{}: the zstd data are damaged at byte {}: {}", file_.path(),
                    file_.position() - (input_.size - input_.pos), ZSTD_getErrorName(status));
      inside_frame_ = status != 0;
      more_to_flush_ = output.pos == output.size && inside_frame_;
    }
    return output.pos;
  }

 private:
  std::vector<char> chunk_;
  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  bool inside_frame_ = false;
  bool more_to_flush_ = false;  ///< the last call filled `out`, so that the decoder may hold text already
};

std::unique_ptr<CompressedInput::Decoder> make_decoder(const std::string& path) {
  switch (compression_of(path)) {
    case Compression::Gzip:
      return std::make_unique<GzipDecoder>(path);
    case Compression::Zstd:
      return std::make_unique<ZstdDecoder>(path);
    case Compression::None:
      break;
  }
  return std::make_unique<PlainDecoder>(path);
}

}  // namespace

Compression compression_of(std::string_view path) {
  if (path.ends_with(".gz")) return Compression::Gzip;
  if (path.ends_with(".zst")) return Compression::Zstd;
  return Compression::None;
}

std::string_view without_compression_suffix(std::string_view path) {
  return compression_of(path) == Compression::None ? path : path.substr(0, path.rfind('.'));
}

CompressedInput::CompressedInput(const std::string& path) : path_(path), decoder_(make_decoder(path)) {}
CompressedInput::~CompressedInput() = default;
CompressedInput::CompressedInput(CompressedInput&&) noexcept = default;
CompressedInput& CompressedInput::operator=(CompressedInput&&) noexcept = default;

std::size_t CompressedInput::read(char* out, std::size_t capacity) {
  std::size_t filled = 0;
  while (filled < capacity) {
    const std::size_t count = decoder_->read(out + filled, capacity - filled);
    if (count == 0) break;
    filled += count;
  }
  return filled;
}

void CompressedInput::skip(std::uint64_t count) {
  count -= decoder_->jump(count);
  std::vector<char> scratch(std::min<std::uint64_t>(count, kChunkBytes));
  while (count > 0) {
    const std::size_t step = read(scratch.data(), std::min<std::uint64_t>(count, scratch.size()));
    base::require(step > 0, "{}: the file is shorter than it was", path_);
    count -= step;
  }
}

std::uint64_t CompressedInput::file_position() const {
  return decoder_->file_position();
}

}  // namespace plenum::io

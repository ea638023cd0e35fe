#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace plenum::io {

enum class Compression { None, Gzip, Zstd };

/// The compression that a file's name announces: .gz, .zst, or none.
Compression compression_of(std::string_view path);

/// `path` without the ending of its compression: corpus.jsonl.gz -> corpus.jsonl.
std::string_view without_compression_suffix(std::string_view path);

/// A file read from its beginning, unpacked on the way, in bounded memory. Gzip files may have several
/// members, Zstandard files several frames. Truncated or damaged data throws UserError with the file and the
/// offset of the damage.
class CompressedInput {
 public:
  explicit CompressedInput(const std::string& path);
  ~CompressedInput();
  CompressedInput(CompressedInput&&) noexcept;
  CompressedInput& operator=(CompressedInput&&) noexcept;

  /// Fills `out` with the next unpacked bytes and returns their number, which is less than `capacity` only at
  /// the end.
  std::size_t read(char* out, std::size_t capacity);

  /// Moves `count` unpacked bytes ahead; at once where the file is not compressed. Throws UserError when the
  /// file ends before.
  void skip(std::uint64_t count);

  /// How many bytes of the file itself have been read, for progress.
  std::uint64_t file_position() const;

  /// Turns the bytes of a file into text; one per compression.
  class Decoder;

 private:
  std::string path_;
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace plenum::io

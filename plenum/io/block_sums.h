#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plenum::io {

/// Checksums of the blocks of a file, made of its parts in any order and by any number of processes: what a
/// part contributes is added. Written as `sum64:0123456789abcdef`. Guards against damage, not against malice.
///
/// A block's checksum is the sum, modulo 2^64, of its little-endian words of 32 bits, each multiplied by two
/// odd numbers: one for its place in its 4096 bytes, one for their place in the file. So a single word that
/// is altered is always noticed, and so are parts that changed places.
class BlockSums {
 public:
  static constexpr std::uint64_t kBlockBytes = std::uint64_t{64} << 20;

  /// Of a file of which nothing is known but its size.
  explicit BlockSums(std::uint64_t file_bytes);

  /// Adds what lies in the file from `offset` on: whole words, but at its end.
  void add(std::uint64_t offset, std::string_view bytes);
  /// Adds parts that another counted, in a file of the same size.
  void add(std::span<const std::uint64_t> others);

  /// One for each block.
  std::span<const std::uint64_t> values() const { return sums_; }

 private:
  std::uint64_t file_bytes_;
  std::vector<std::uint64_t> sums_;
};

std::string format_block_sum(std::uint64_t sum);

/// Those of a file as it lies on the disk.
BlockSums file_block_sums(const std::string& path);

}  // namespace plenum::io

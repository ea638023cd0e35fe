#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/tensor/device.h"

namespace plenum::workspace {

// Of attention.

struct AttentionSize {
  std::int64_t rows = 0;
  std::int64_t max_length = 0;  ///< of a sequence
  std::int64_t heads = 0;
  std::int64_t head_width = 0;
};

/// Scratch that forward or backward needs, on the CPU each thread. Throws UserError for heads of a width that
/// the GPU has no kernels for.
std::size_t attention_scratch_bytes(tensor::Device device, const AttentionSize& size);

/// Bytes in which forward keeps what dropout keeps, at least: none on the CPU, which draws where it reads.
std::size_t attention_keep_bytes(tensor::Device device, const AttentionSize& size);

/// Rows of a tile of the GPU: sequences up to this length are one tile.
inline constexpr std::int32_t kAttentionTileRows = 512;

/// The most tiles, and runs of rows that belong to no sequence, that so many rows and sequences can have.
struct AttentionWorkCapacity {
  std::int64_t tiles = 0;
  std::int64_t gaps = 0;
};
AttentionWorkCapacity attention_work_capacity(std::int64_t rows, std::int64_t sequences);

/// The length for which the GPU's kernels are launched where no sequence is longer: sequences of other
/// lengths with the same one can take their place.
std::int64_t attention_launch_length(std::int64_t max_length);

/// Queries of a sequence that a thread of the CPU works on at a time, at most, whatever the processor.
inline constexpr std::int64_t kMostQueryRows = 258;

/// Where in a thread's scratch the CPU has what it needs for a block of queries: scores, in backward their
/// gradients, in rows that end with a whole vector, and the random bytes of as many.
struct CpuAttentionScratch {
  std::int64_t columns = 0;  ///< the length, rounded up to whole groups of dropout's channels
  std::int64_t stride = 0;   ///< between rows of weights and gradients
  // Offsets; weights [most_rows, stride] lie at the beginning.
  std::size_t gradients = 0;     ///< [most_rows, stride]
  std::size_t row_values = 0;    ///< [most_rows]
  std::size_t random_bytes = 0;  ///< [most_rows, columns]
  std::size_t gemm = 0;          ///< of products
  std::size_t end = 0;

  explicit CpuAttentionScratch(std::int64_t length, std::int64_t most_rows = kMostQueryRows);
};

/// What belongs to a query beside its scores, in backward by mma.sync: two numbers.
inline constexpr std::size_t kQueryStatisticsBytes = 8;
std::size_t attention_scratch_bytes_sm80(std::int64_t num_rows, std::int64_t num_heads);

/// What a thread block of backward by wgmma keeps from round to round: of every block of 64 queries of a
/// sequence dQ in fp32, of heads of width 64, and two statistics.
inline constexpr int kMaxThreadBlocksSm90 = 144;  ///< each fills a multiprocessor: Hopper has at most 144
inline constexpr std::int64_t kBlockRowsSm90 = 64;
inline constexpr std::size_t kBlockBytesSm90 = kBlockRowsSm90 * (64 + 2) * sizeof(float);
constexpr std::int64_t num_blocks_sm90(std::int64_t max_length) {
  return (max_length + kBlockRowsSm90 - 1) / kBlockRowsSm90;
}
std::size_t attention_scratch_bytes_sm90(std::int64_t max_length);

/// Of a row of bits that the GPU keeps: 16 bytes for each block of 128 columns.
inline constexpr int kKeepBlockColumns = 128;
inline constexpr int kKeepWords = 4;        ///< of a row and block
inline constexpr int kKeepRowsBehind = 64;  ///< that mean nothing: kernels may read whole tiles

/// Throws UserError unless the GPU has kernels for heads of this width.
void require_head_width(std::int64_t head_width);

/// How the GPU's scratch is used. At its beginning lies the counter of items. The bits by key have a place
/// also where forward keeps them in keep_bits, and this stays empty (34 MB at 32,768 tokens, 16 heads and 512
/// tokens at most): whoever asks for the size does not say yet whether it will. Nor does the size depend on
/// which of the kernels run: it is enough for either.
struct GpuAttentionScratch {
  static constexpr std::size_t kAlignment = 256;
  std::size_t form = kAlignment;
  std::size_t by_query = 0;
  std::size_t by_key = 0;
  std::size_t end = 0;

  explicit GpuAttentionScratch(const AttentionSize& size);
};

}  // namespace plenum::workspace

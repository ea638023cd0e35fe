#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "plenum/base/check.h"
#include "plenum/kernels/attention.h"
#include "plenum/kernels/attention_work.h"

namespace plenum::kernels::cuda {

// The memory that attention works in, as a function of its size alone: plans are made without a GPU, too.

inline void require_head_width(std::int64_t head_width) {
  base::require(
      head_width == 64 || head_width == 128,
      "attention on the GPU needs heads of width 64 or 128; change the number of heads or use the CPU: "
      "the width is {}",
      head_width);
}

/// What belongs to a query beside its scores, in backward by mma.sync: log2 e times lse, and D = sum over k
/// of dO O. The half whose rows are queries writes them, the other reads.
struct QueryStatistics {
  float lse;
  float d;
};
inline std::size_t attention_scratch_bytes_sm80(std::int64_t num_rows, std::int64_t num_heads) {
  return static_cast<std::size_t>(num_rows * num_heads) * sizeof(QueryStatistics);
}

/// What a thread block of backward by wgmma keeps from round to round: of every block of 64 queries of a
/// sequence dQ in fp32, of heads of width 64, and two statistics.
inline constexpr int kMaxThreadBlocksSm90 = 144;  ///< each fills a multiprocessor: Hopper has at most 144
inline constexpr std::int64_t kBlockRowsSm90 = 64;
inline constexpr std::size_t kBlockBytesSm90 = kBlockRowsSm90 * (64 + 2) * sizeof(float);
inline std::int64_t num_blocks_sm90(std::int64_t max_length) {
  return (max_length + kBlockRowsSm90 - 1) / kBlockRowsSm90;
}
inline std::size_t attention_scratch_bytes_sm90(std::int64_t max_length) {
  return kMaxThreadBlocksSm90 * static_cast<std::size_t>(num_blocks_sm90(max_length)) * kBlockBytesSm90;
}

/// Of a row of bits (see attention_keep_bits.h): 16 bytes for each block of 128 columns.
inline constexpr int kKeepBlockColumns = 128;
inline constexpr int kKeepWords = 4;        ///< of a row and block
inline constexpr int kKeepRowsBehind = 64;  ///< that mean nothing: kernels may read whole tiles
/// Bytes of the bits by query or by key.
inline std::size_t attention_keep_bytes(const AttentionSize& size) {
  const std::int64_t num_column_blocks =
      (attention_launch_length(size.max_length) + kKeepBlockColumns - 1) / kKeepBlockColumns;
  return static_cast<std::size_t>(size.heads * num_column_blocks * size.rows + kKeepRowsBehind) *
         (kKeepWords * sizeof(std::uint32_t));
}

/// How the stream's scratch is used. At its beginning lies the counter of items. The bits by key have a place
/// also where forward keeps them in keep_bits, and this stays empty (34 MB at 32,768 tokens, 16 heads and 512
/// tokens at most): whoever asks for the size does not say yet whether it will. Nor does the size depend on
/// which of the kernels run: it is enough for either.
struct AttentionScratch {
  static constexpr std::size_t kAlignment = 256;
  std::size_t form = kAlignment;
  std::size_t by_query = 0;
  std::size_t by_key = 0;
  std::size_t end = 0;

  explicit AttentionScratch(const AttentionSize& size) {
    const auto behind = [](std::size_t begin, std::size_t bytes) {
      return begin + (bytes + kAlignment - 1) / kAlignment * kAlignment;
    };
    const std::size_t bits_bytes = attention_keep_bytes(size);
    by_query = behind(form, std::max(attention_scratch_bytes_sm80(size.rows, size.heads),
                                     attention_scratch_bytes_sm90(attention_launch_length(size.max_length))));
    by_key = behind(by_query, bits_bytes);
    end = behind(by_key, bits_bytes);
  }
};

inline std::size_t attention_scratch_bytes(const AttentionSize& size) {
  require_head_width(size.head_width);  // so that whoever plans memory learns it
  return AttentionScratch(size).end;
}

}  // namespace plenum::kernels::cuda

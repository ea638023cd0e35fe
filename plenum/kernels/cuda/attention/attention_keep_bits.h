#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "plenum/base/philox.h"
#include "plenum/kernels/cuda/attention/attention_scratch.h"
#include "plenum/kernels/cuda/attention/attention_tiles.h"

namespace plenum::kernels::cuda {

/// Which attention weights of a layer dropout keeps, as bits in device memory: Philox is drawn once
/// for each weight, and the kernels of attention only read.
///
/// `by_query` has a row of bits for each query and head, with the keys of its sequence as columns; `by_key`
/// has a row for each key, with the queries as columns. 128 columns of a row are 4 words: word t has bit 2 n
/// + e for column 8 n + 2 t + e (n < 16, t < 4, e < 2). Of the accumulators of both mma.m16n8 and wgmma, the
/// thread with lane % 4 = t holds exactly these columns, in this order: it reads one word for each of its
/// rows and 128 columns, and a warp reads 8 rows with one load of 128 bytes. A bit is 1 where the weight is
/// kept; bits of columns behind the sequence's end are undefined.
///
/// Either is [H, column blocks, T, 4]; rows are those of the micro-batch. Behind it lie kRowsBehind rows more
/// that mean nothing: kernels may read whole tiles of 64 rows from any row on.
struct AttentionKeepBits {
  const std::uint32_t* by_query = nullptr;  ///< null: not drawn
  const std::uint32_t* by_key = nullptr;    ///< null: not drawn
  std::int32_t num_rows = 0;                ///< T
  std::int32_t num_column_blocks = 0;       ///< of 128; enough for the longest sequence

  static constexpr int kBlockColumns = kKeepBlockColumns;
  static constexpr int kWords = kKeepWords;
  static constexpr int kRowsBehind = kKeepRowsBehind;

  /// Index of the first word of a row; block b's are b * block_stride() behind it.
  __host__ __device__ std::int64_t first_word(std::int32_t head, std::int64_t row) const {
    return (std::int64_t{head} * num_column_blocks * num_rows + row) * kWords;
  }
  __host__ __device__ std::int64_t block_stride() const { return std::int64_t{num_rows} * kWords; }
};

/// Draws the bits of a layer, as kernels/dropout.h defines them: of one kind or of both.
struct DrawAttentionKeepBits {
  const AttentionTile* tiles = nullptr;
  const std::int32_t* num_tiles = nullptr;  ///< in device memory
  std::int32_t tile_rows = 0;               ///< of the list, a multiple of 128
  const std::int64_t* samples_S = nullptr;  ///< identity of each sequence
  std::int32_t num_rows = 0;
  std::int32_t num_heads = 0;
  std::int32_t num_column_blocks = 0;
  std::uint32_t threshold = 0;  ///< this and the next three: of Dropout
  std::uint32_t layer_and_site = 0;
  std::uint32_t first_head = 0;
  base::PhiloxKey key = {};
  std::uint32_t* by_query = nullptr;  ///< overwritten, or null: not wanted
  std::uint32_t* by_key = nullptr;    ///< overwritten, or null: not wanted
};
void draw_attention_keep_bits(cudaStream_t stream, int num_multiprocessors,
                              const DrawAttentionKeepBits& args);

}  // namespace plenum::kernels::cuda

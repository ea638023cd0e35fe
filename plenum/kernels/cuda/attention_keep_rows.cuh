#pragma once

#include <cstdint>

#include "plenum/kernels/cuda/attention_fragments.cuh"
#include "plenum/kernels/cuda/attention_keep_bits.h"

namespace plenum::kernels::cuda {

/// The keep bits of a thread's two rows of a tile, block of 64 columns by block.
struct KeepRows {
  const std::uint32_t* words[2];
  std::int64_t block_stride;

  /// `bits` is one of the two kinds, `row` the first of the tile in the micro-batch.
  __device__ KeepRows(const AttentionKeepBits& keep, const std::uint32_t* bits, int head, int row,
                      const FragmentRows& rows)
      : block_stride(keep.block_stride()) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int safe_row = min(row + rows.row[i], keep.num_rows - 1);  // what is behind the end is not stored
      words[i] = bits + keep.first_word(head, safe_row) + rows.lane_in_quad;
    }
  }

  /// A word has the bits of two blocks.
  __device__ void load(int block, std::uint32_t (&bits)[2]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) bits[i] = __ldg(words[i] + block / 2 * block_stride) >> (16 * (block % 2));
  }
};

/// Whether the weight at index i of an accumulator is kept.
__device__ inline bool is_kept(const std::uint32_t (&bits)[2], int i) {
  return (bits[i / 2 % 2] >> (2 * (i / 4) + i % 2) & 1) != 0;
}

/// Sets weights that are not kept to zero.
__device__ inline void drop(Accumulator& weights, const std::uint32_t (&bits)[2]) {
#pragma unroll
  for (int i = 0; i < 32; ++i)
    if (!is_kept(bits, i)) weights[i] = 0;
}

}  // namespace plenum::kernels::cuda

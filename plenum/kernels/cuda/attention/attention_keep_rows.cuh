#pragma once

#include <cstdint>

#include "plenum/kernels/cuda/attention/attention_fragments.cuh"
#include "plenum/kernels/cuda/attention/attention_keep_bits.h"

namespace plenum::kernels::cuda {

/// The keep bits of a thread's two rows of a tile, block of 64 columns by block.
struct KeepRows {
  const std::uint32_t* words;

  /// `bits` is one of the two kinds, `row` the first of the tile in the micro-batch.
  __device__ KeepRows(const AttentionKeepBits& keep, const std::uint32_t* bits, int head, int row,
                      const FragmentRows& rows)
      : words(bits + keep.first_word(head, row + rows.row[0]) + rows.lane_in_quad) {
    static_assert(kTileRows <= AttentionKeepBits::kRowsBehind);
  }

  /// A word has the bits of two blocks.
  __device__ void load(const AttentionKeepBits& keep, int block, std::uint32_t (&bits)[2]) const {
    const std::uint32_t* const of_block = words + block / 2 * keep.block_stride();
    constexpr int kNextRow = 8 * AttentionKeepBits::kWords;
#pragma unroll
    for (int i = 0; i < 2; ++i) bits[i] = __ldg(of_block + i * kNextRow) >> (16 * (block % 2));
  }
};

/// Whether the weight at index i of an accumulator is kept.
__device__ inline bool is_kept(const std::uint32_t (&bits)[2], int i) {
  return (bits[i / 2 % 2] >> (2 * (i / 4) + i % 2) & 1) != 0;
}

/// Bytes of (low, high) named by the selector's digits; from 8 on, the sign bit of byte (digit - 8) eight
/// times.
__device__ inline std::uint32_t permute_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  std::uint32_t bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(low), "r"(high), "r"(selector));
  return bytes;
}

/// Sets weights that are not kept to zero, in pairs: each of the two bits is shifted to the top of its byte
/// and from there spread over 16.
__device__ inline void drop(RegisterOperand& weights, const std::uint32_t (&bits)[2]) {
  const std::uint32_t both = permute_bytes(bits[0], bits[1], 0x5410);  // 16 bits of each row
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int byte = 2 * (i % 2) + i / 8;
    const int bit = 2 * (i / 2 % 4);
    weights[i / 4][i % 4] &= permute_bytes(both << (7 - bit), both << (6 - bit), 0xCC88 + 0x1111 * byte);
  }
}

}  // namespace plenum::kernels::cuda

#include "plenum/kernels/cuda/attention_keep_bits.h"

namespace plenum::kernels::cuda {
namespace {

constexpr int kBlockRows = 128;
constexpr int kThreads = 128;
constexpr int kUnitColumns = 32;                   // of two draws
constexpr std::uint32_t kHeadChannels = 1U << 20;  // see kernels/dropout.h
constexpr int kBlocksPerMultiprocessor = 8;

// Compares the four bytes of a random word with the threshold at once. `addend` is 256 - threshold in both
// halves of a word: a byte at or above the threshold carries into bit 8 of its half. The results of bytes 0
// to 3 become bits 8, 9, 24, 25.
__device__ inline std::uint32_t compare_bytes(std::uint32_t word, std::uint32_t addend) {
  const std::uint32_t even = (word & 0x00FF00FFU) + addend;
  const std::uint32_t odd = (__byte_perm(word, 0, 0x4341) << 1) + (addend << 1);
  return (even & 0x01000100U) | (odd & 0x02000200U);
}

// The bits of 32 columns of a row: byte (t % 2) * 2 + t / 2 has bit 2 n + e for column 8 n + 2 t + e. Word w
// of draw d is for the columns 16 d + 4 w ..., hence has n = 2 d + w / 2 and t = 2 (w % 2) + byte / 2.
__device__ inline std::uint32_t draw_unit(base::PhiloxCounter counter, base::PhiloxKey key,
                                          std::uint32_t addend) {
  std::uint32_t unit = 0;
#pragma unroll
  for (int draw = 0; draw < 2; ++draw) {
    const base::PhiloxCounter words = base::philox(counter, key);
    ++counter[3];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const std::uint32_t bits = compare_bytes(words[w], addend);
      const int place = 8 * (w % 2) + 4 * draw + 2 * (w / 2);
      unit |= place < 8 ? bits >> (8 - place) : bits << (place - 8);
    }
  }
  return unit;
}

// Of a row's four units, word t takes one byte each.
__device__ inline uint4 gather_words(uint4 units) {
  const std::uint32_t low02 = __byte_perm(units.x, units.y, 0x5140);  // bytes for t = 0, 0, 2, 2
  const std::uint32_t low13 = __byte_perm(units.x, units.y, 0x7362);  // t = 1, 1, 3, 3
  const std::uint32_t high02 = __byte_perm(units.z, units.w, 0x5140);
  const std::uint32_t high13 = __byte_perm(units.z, units.w, 0x7362);
  return {__byte_perm(low02, high02, 0x5410), __byte_perm(low13, high13, 0x5410),
          __byte_perm(low02, high02, 0x7632), __byte_perm(low13, high13, 0x7632)};
}

// Bit b of lane i becomes bit i of lane b: in five exchanges, each of which swaps the off-diagonal quarters
// of squares of 2 s x 2 s bits.
__device__ inline std::uint32_t transpose_bits(std::uint32_t bits) {
  const unsigned lane = threadIdx.x % 32;
  std::uint32_t lower = 0x0000FFFFU;  // bits whose index has no s
#pragma unroll
  for (unsigned s = 16; s > 0; s /= 2) {
    const bool is_upper = (lane & s) != 0;
    const std::uint32_t stays = is_upper ? ~lower : lower;
    const std::uint32_t other = __shfl_xor_sync(~0U, bits, s);
    const std::uint32_t moved = __funnelshift_l(other, other, is_upper ? 32 - s : s);
    bits = (bits & stays) | (moved & ~stays);
    lower ^= lower << (s / 2);
  }
  return bits;
}

// 128 queries and 128 keys of a sequence and head. At its end there are fewer.
struct Block {
  AttentionTile sequence;  // any of its tiles
  int head;
  int first_query;
  int first_key;
  int num_queries;
  int num_keys;
};

// Draws the block's bits into shared memory, as units. Where it has few queries, several threads share one.
__device__ inline void draw_block(const DrawAttentionKeepBits& args, const Block& block, uint4* units) {
  const int num_units = (block.num_keys + kUnitColumns - 1) / kUnitColumns;
  const int rows_at_once = block.num_queries > 64 ? 128 : (block.num_queries > 32 ? 64 : 32);
  const int row = static_cast<int>(threadIdx.x) % rows_at_once;
  if (row >= block.num_queries) return;
  const std::uint32_t addend = (256 - args.threshold) * 0x00010001U;
  const auto sample = static_cast<std::uint64_t>(args.samples_S[block.sequence.sequence]);
  const std::uint32_t channel = static_cast<std::uint32_t>(block.head) * kHeadChannels + block.first_key;
  for (int unit = static_cast<int>(threadIdx.x) / rows_at_once; unit < num_units;
       unit += kThreads / rows_at_once) {
    const base::PhiloxCounter counter{static_cast<std::uint32_t>(sample),
                                      static_cast<std::uint32_t>(sample >> 32) | (args.layer_and_site << 16),
                                      static_cast<std::uint32_t>(block.first_query + row),
                                      (channel + unit * kUnitColumns) / 16};
    reinterpret_cast<std::uint32_t*>(units + row)[unit] = draw_unit(counter, args.key, addend);
  }
}

// The four words of a row and block of 128 columns.
__device__ inline uint4* words_at(std::uint32_t* bits, const DrawAttentionKeepBits& args, const Block& block,
                                  int first_row, int first_column) {
  const std::int64_t column_block =
      std::int64_t{block.head} * args.num_column_blocks + first_column / kBlockRows;
  return reinterpret_cast<uint4*>(bits) + column_block * args.num_rows + block.sequence.start + first_row;
}

template <bool kByKey>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    draw_keep_bits_kernel(const DrawAttentionKeepBits args) {
  __shared__ uint4 units[kBlockRows];
  __shared__ uint4 transposed[kBlockRows];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  // Lane i of warp w takes the query that is bit i of word w of a key's row.
  const int query = 8 * (lane / 2) + 2 * warp + lane % 2;
  // Long sequences come first in the list, so for a given place within tiles those that have a block there
  // do: with places slowest, every thread block gets as many blocks as any other.
  const int items_per_place = *args.num_tiles * args.num_heads;
  const int num_items = args.tile_rows / kBlockRows * args.num_column_blocks * items_per_place;
  for (int item = static_cast<int>(blockIdx.x); item < num_items; item += static_cast<int>(gridDim.x)) {
    const int place = item / items_per_place;
    const AttentionTile tile = args.tiles[item % items_per_place / args.num_heads];
    const int first_query = tile.first + place / args.num_column_blocks * kBlockRows;
    const int first_key = place % args.num_column_blocks * kBlockRows;
    if (first_query >= tile.length || first_key >= tile.length) continue;
    const Block block{.sequence = tile,
                      .head = item % args.num_heads,
                      .first_query = first_query,
                      .first_key = first_key,
                      .num_queries = min(kBlockRows, tile.length - first_query),
                      .num_keys = min(kBlockRows, tile.length - first_key)};
    draw_block(args, block, units);
    __syncthreads();
    const uint4 words = gather_words(units[query]);
    if (query < block.num_queries)
      words_at(args.by_query, args, block, first_query, first_key)[query] = words;
    if constexpr (kByKey) {
      const std::uint32_t word_of[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        const int key = 8 * (lane / 2) + 2 * t + lane % 2;
        reinterpret_cast<std::uint32_t*>(transposed + key)[warp] = transpose_bits(word_of[t]);
      }
      __syncthreads();
      const int key = static_cast<int>(threadIdx.x);
      if (key < block.num_keys)
        words_at(args.by_key, args, block, first_key, first_query)[key] = transposed[key];
    }
    __syncthreads();
  }
}

}  // namespace

std::size_t attention_keep_bits_bytes(std::int64_t num_rows, std::int64_t num_heads,
                                      std::int64_t max_length) {
  const std::int64_t num_column_blocks = (max_length + kBlockRows - 1) / kBlockRows;
  return static_cast<std::size_t>(num_heads * num_column_blocks * num_rows) * sizeof(uint4);
}

void draw_attention_keep_bits(cudaStream_t stream, int num_multiprocessors,
                              const DrawAttentionKeepBits& args) {
  const auto kernel = args.by_key != nullptr ? draw_keep_bits_kernel<true> : draw_keep_bits_kernel<false>;
  kernel<<<num_multiprocessors * kBlocksPerMultiprocessor, kThreads, 0, stream>>>(args);
}

}  // namespace plenum::kernels::cuda

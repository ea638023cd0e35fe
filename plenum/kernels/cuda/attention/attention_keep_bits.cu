#include "plenum/kernels/cuda/attention/attention_keep_bits.h"

namespace plenum::kernels::cuda {
namespace {

constexpr int kBlockRows = AttentionKeepBits::kBlockColumns;
constexpr int kUnitColumns = 32;                   // of two draws
constexpr std::uint32_t kHeadChannels = 1U << 20;  // see kernels/dropout.h
constexpr int kWarps = 4;                          // of a thread block; each works alone

// Which of the two kinds of bits are drawn.
enum class Kinds { ByQuery, ByKey, Both };
template <Kinds kKinds>
constexpr int kBlocksPerMultiprocessor = kKinds == Kinds::ByQuery ? 6 : 5;

// What the kernel gets: everything that does not change from draw to draw is a constant.
struct Problem {
  DrawAttentionKeepBits args;
  base::PhiloxRoundKeys keys;
  std::uint32_t addend;     // the lower seven bits of 256 - threshold, in each byte
  std::uint32_t powers[8];  // of two; see draw_unit
};

// Compares the four bytes of a random word with the threshold at once: bit 7 of each byte tells whether it is
// kept. Byte + (256 - threshold) carries out of eight bits where byte >= threshold, that is where two are set
// of bit 7 of the byte, bit 7 of the addend (clear where the threshold is above 128), and the carry from
// below.
template <bool kAbove128>
__device__ inline std::uint32_t compare_bytes(std::uint32_t word, std::uint32_t addend) {
  const std::uint32_t sum = (word & 0x7F7F7F7FU) + addend;
  return (kAbove128 ? word & sum : word | sum) & 0x80808080U;
}

// The bits of 32 columns of a row: byte b has bit i for column 4 i + b, which word i of two draws decides.
// Multiplications that add do the shifting, by factors that the compiler does not know for powers of two: it
// would shift, and logical operations are what this kernel has too many of.
template <bool kAbove128>
__device__ inline std::uint32_t draw_unit(base::PhiloxCounter counter, const Problem& problem) {
  std::uint32_t bits = 0;
#pragma unroll
  for (int draw = 0; draw < 2; ++draw) {
    const base::PhiloxCounter words = base::philox_by_round_keys(counter, problem.keys);
    ++counter[3];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      bits += (compare_bytes<kAbove128>(words[w], problem.addend) >> 7) * problem.powers[4 * draw + w];
    }
  }
  return bits;
}

// The words of a row from its four units. First byte b of all four: bit i of byte q is for column 32 q + 4 i
// + b. There 4 i + b = 8 n + 2 t + e, so that even bits are for t = b / 2 and odd ones for t = 2 + b / 2, and
// e = b % 2.
__device__ inline uint4 gather_words(const std::uint32_t (&units)[4]) {
  const std::uint32_t low01 = __byte_perm(units[0], units[1], 0x5140);
  const std::uint32_t low23 = __byte_perm(units[0], units[1], 0x7362);
  const std::uint32_t high01 = __byte_perm(units[2], units[3], 0x5140);
  const std::uint32_t high23 = __byte_perm(units[2], units[3], 0x7362);
  const std::uint32_t of_byte[4] = {__byte_perm(low01, high01, 0x5410), __byte_perm(low01, high01, 0x7632),
                                    __byte_perm(low23, high23, 0x5410), __byte_perm(low23, high23, 0x7632)};
  constexpr std::uint32_t kEven = 0x55555555U;
  return {(of_byte[0] & kEven) | ((of_byte[1] & kEven) << 1),
          (of_byte[2] & kEven) | ((of_byte[3] & kEven) << 1),
          ((of_byte[0] >> 1) & kEven) | (of_byte[1] & ~kEven),
          ((of_byte[2] >> 1) & kEven) | (of_byte[3] & ~kEven)};
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

// 128 queries and 128 keys of a sequence and head. At its end there are fewer, and behind it none.
struct Block {
  int start;  // of the sequence
  int sequence;
  int head;
  int first_query;
  int first_key;
  int num_queries;
  int num_keys;

  __device__ Block(const AttentionTile& tile, int block_head, int row_in_tile, int key)
      : start(tile.start),
        sequence(tile.sequence),
        head(block_head),
        first_query(tile.first + row_in_tile),
        first_key(key),
        num_queries(min(kBlockRows, tile.length - first_query)),
        num_keys(min(kBlockRows, tile.length - first_key)) {}
};

// The four words of a row and block of 128 columns.
__device__ inline uint4* words_at(std::uint32_t* bits, const DrawAttentionKeepBits& args, const Block& block,
                                  int first_row, int first_column) {
  const std::int64_t column_block =
      std::int64_t{block.head} * args.num_column_blocks + first_column / kBlockRows;
  return reinterpret_cast<uint4*>(bits) + column_block * args.num_rows + block.start + first_row;
}

// The units of one query of a block.
template <bool kAbove128>
__device__ inline void draw_units(const Problem& problem, const Block& block, std::uint64_t sample, int query,
                                  std::uint32_t (&units)[4]) {
  const std::uint32_t head = problem.args.first_head + static_cast<std::uint32_t>(block.head);
  const std::uint32_t channel = head * kHeadChannels + block.first_key;
#pragma unroll
  for (int u = 0; u < 4; ++u) {
    if (u * kUnitColumns >= block.num_keys) break;
    units[u] = draw_unit<kAbove128>(
        {static_cast<std::uint32_t>(sample),
         static_cast<std::uint32_t>(sample >> 32) | (problem.args.layer_and_site << 16),
         static_cast<std::uint32_t>(block.first_query + query), (channel + u * kUnitColumns) / 16},
        problem);
  }
}

// Draws a block by one warp and writes its bits. In round t lane i has query 8 (i / 2) + 2 t + i % 2: the one
// that is bit i of word t of a key's row. So a transposition of unit u within the warp gives these words of
// keys: of key 32 u + 4 (i % 8) + i / 8 to lane i.
template <Kinds kKinds, bool kAbove128>
__device__ inline void draw_block(const Problem& problem, const Block& block) {
  const DrawAttentionKeepBits& args = problem.args;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto sample = static_cast<std::uint64_t>(args.samples_S[block.sequence]);
  uint4 keys[4] = {};
#pragma unroll 1
  for (int t = 0; t < 4; ++t) {
    const int query = 8 * (lane / 2) + 2 * t + lane % 2;
    std::uint32_t units[4] = {};
    draw_units<kAbove128>(problem, block, sample, query, units);
    if constexpr (kKinds != Kinds::ByKey) {
      uint4* const of_queries = words_at(args.by_query, args, block, block.first_query, block.first_key);
      if (query < block.num_queries) of_queries[query] = gather_words(units);
    }
    if constexpr (kKinds != Kinds::ByQuery) {
#pragma unroll
      for (int u = 0; u < 4; ++u)
        keys[u] = {keys[u].y, keys[u].z, keys[u].w, transpose_bits(units[u])};  // the last of four stays
    }
  }
  if constexpr (kKinds != Kinds::ByQuery) {
    uint4* const of_keys = words_at(args.by_key, args, block, block.first_key, block.first_query);
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int key = kUnitColumns * u + 4 * (lane % 8) + lane / 8;
      if (key < block.num_keys) of_keys[key] = keys[u];
    }
  }
}

template <Kinds kKinds, bool kAbove128>
__global__ void __launch_bounds__(32 * kWarps, kBlocksPerMultiprocessor<kKinds>)
    draw_keep_bits_kernel(const __grid_constant__ Problem problem) {
  const DrawAttentionKeepBits& args = problem.args;
  const int num_tiles = *args.num_tiles;
  const int num_warps = static_cast<int>(gridDim.x) * kWarps;
  // Long sequences come first in the list, so for a given place within tiles those that have a block there
  // do: with places outside, every warp gets as many blocks as any other.
  int index = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32;
  for (int row_in_tile = 0; row_in_tile < args.tile_rows; row_in_tile += kBlockRows) {
    for (int column_block = 0; column_block < args.num_column_blocks; ++column_block) {
      for (; index < num_tiles; index += num_warps) {
        const Block block(args.tiles[index], static_cast<int>(blockIdx.y), row_in_tile,
                          column_block * kBlockRows);
        if (block.num_queries > 0 && block.num_keys > 0) draw_block<kKinds, kAbove128>(problem, block);
      }
      index -= num_tiles;
    }
  }
}

template <Kinds kKinds, bool kAbove128>
void launch(cudaStream_t stream, int num_multiprocessors, const DrawAttentionKeepBits& args) {
  const Problem problem{.args = args,
                        .keys = base::philox_round_keys(args.key),
                        .addend = ((256 - args.threshold) & 0x7F) * 0x01010101U,
                        .powers = {1, 2, 4, 8, 16, 32, 64, 128}};
  const int blocks_per_head =
      (num_multiprocessors * kBlocksPerMultiprocessor<kKinds> + args.num_heads - 1) / args.num_heads;
  draw_keep_bits_kernel<kKinds, kAbove128>
      <<<dim3(blocks_per_head, args.num_heads), 32 * kWarps, 0, stream>>>(problem);
}

}  // namespace

void draw_attention_keep_bits(cudaStream_t stream, int num_multiprocessors,
                              const DrawAttentionKeepBits& args) {
  const auto launch_kinds = [&]<Kinds kKinds>() {
    (args.threshold > 128 ? launch<kKinds, true> : launch<kKinds, false>)(stream, num_multiprocessors, args);
  };
  if (args.by_key == nullptr)
    launch_kinds.operator()<Kinds::ByQuery>();
  else if (args.by_query == nullptr)
    launch_kinds.operator()<Kinds::ByKey>();
  else
    launch_kinds.operator()<Kinds::Both>();
}

}  // namespace plenum::kernels::cuda

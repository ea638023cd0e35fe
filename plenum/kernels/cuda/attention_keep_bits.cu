#include "plenum/kernels/cuda/attention_keep_bits.h"

namespace plenum::kernels::cuda {
namespace {

constexpr int kBlockRows = 128;
constexpr int kThreads = 128;
constexpr int kUnitColumns = 32;                   // of two draws
constexpr std::uint32_t kHeadChannels = 1U << 20;  // see kernels/dropout.h
constexpr int kBlocksPerMultiprocessor = 8;

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
// Shifted by i, what stood in bits 7, 15, 23, 31 fills 32 bits that begin at bit 7 and end in the upper word.
// Multiplications that add do the shifting, by factors that the compiler does not know for powers of two: it
// would shift, and logical operations are what this kernel has too many of.
template <bool kAbove128>
__device__ inline std::uint32_t draw_unit(base::PhiloxCounter counter, const Problem& problem) {
  std::uint64_t bits = 0;
#pragma unroll
  for (int draw = 0; draw < 2; ++draw) {
    const base::PhiloxCounter words = base::philox_by_round_keys(counter, problem.keys);
    ++counter[3];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      bits +=
          std::uint64_t{compare_bytes<kAbove128>(words[w], problem.addend)} * problem.powers[4 * draw + w];
    }
  }
  const auto low = static_cast<std::uint32_t>(bits);
  const auto high = static_cast<std::uint32_t>(bits >> 32);
  return __funnelshift_r(low | high, low | high, 7);
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

// Where shared memory has what belongs to a row. Rows 8 n + 2 t + e are written by threads with neighbouring
// rows, read by those with the same t, or the other way round; neither way meets a bank twice.
constexpr int kPlaces = 4 * 40;
__device__ inline int place_of(int row) {
  return row / 2 % 4 * 40 + row / 8 * 2 + row % 2;
}

struct Shared {
  std::uint32_t units[4][kPlaces];       // of a query
  std::uint32_t transposed[4][kPlaces];  // words of a key
};

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

// Draws the block's bits into shared memory, as units. Where it has few queries, several threads share one.
template <bool kAbove128>
__device__ inline void draw_block(const Problem& problem, const Block& block, Shared& shared) {
  const DrawAttentionKeepBits& args = problem.args;
  const int num_units = (block.num_keys + kUnitColumns - 1) / kUnitColumns;
  const int rows_log2 = block.num_queries > 64 ? 7 : (block.num_queries > 32 ? 6 : 5);
  const int row = static_cast<int>(threadIdx.x) & ((1 << rows_log2) - 1);
  if (row >= block.num_queries) return;
  const int place = place_of(row);
  const auto sample = static_cast<std::uint64_t>(args.samples_S[block.sequence]);
  const std::uint32_t channel = static_cast<std::uint32_t>(block.head) * kHeadChannels + block.first_key;
  for (int unit = static_cast<int>(threadIdx.x) >> rows_log2; unit < num_units;
       unit += kThreads >> rows_log2) {
    const base::PhiloxCounter counter{static_cast<std::uint32_t>(sample),
                                      static_cast<std::uint32_t>(sample >> 32) | (args.layer_and_site << 16),
                                      static_cast<std::uint32_t>(block.first_query + row),
                                      (channel + unit * kUnitColumns) / 16};
    shared.units[unit][place] = draw_unit<kAbove128>(counter, problem);
  }
}

// The four words of a row and block of 128 columns.
__device__ inline uint4* words_at(std::uint32_t* bits, const DrawAttentionKeepBits& args, const Block& block,
                                  int first_row, int first_column) {
  const std::int64_t column_block =
      std::int64_t{block.head} * args.num_column_blocks + first_column / kBlockRows;
  return reinterpret_cast<uint4*>(bits) + column_block * args.num_rows + block.start + first_row;
}

// Writes the bits that were drawn, by query and, once transposed, by key.
template <bool kByKey>
__device__ inline void store_block(const DrawAttentionKeepBits& args, const Block& block, Shared& shared) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  // Lane i of warp w takes the query that is bit i of word w of a key's row.
  const int query = 8 * (lane / 2) + 2 * warp + lane % 2;
  const int query_place = place_of(query);
  const uint4 words = gather_words({shared.units[0][query_place], shared.units[1][query_place],
                                    shared.units[2][query_place], shared.units[3][query_place]});
  if (query < block.num_queries)
    words_at(args.by_query, args, block, block.first_query, block.first_key)[query] = words;
  if constexpr (kByKey) {
    const std::uint32_t word_of[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int t = 0; t < 4; ++t)
      shared.transposed[warp][place_of(8 * (lane / 2) + 2 * t + lane % 2)] = transpose_bits(word_of[t]);
    __syncthreads();
    const int key = static_cast<int>(threadIdx.x);
    const int key_place = place_of(key);
    if (key < block.num_keys) {
      words_at(args.by_key, args, block, block.first_key, block.first_query)[key] = {
          shared.transposed[0][key_place], shared.transposed[1][key_place], shared.transposed[2][key_place],
          shared.transposed[3][key_place]};
    }
  }
}

template <bool kByKey, bool kAbove128>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    draw_keep_bits_kernel(const __grid_constant__ Problem problem) {
  __shared__ Shared shared;
  const DrawAttentionKeepBits& args = problem.args;
  const int head = static_cast<int>(blockIdx.y);
  const int num_tiles = *args.num_tiles;
  // Long sequences come first in the list, so for a given place within tiles those that have a block there
  // do: with places outside, every thread block gets as many blocks as any other.
  int index = static_cast<int>(blockIdx.x);
  for (int row_in_tile = 0; row_in_tile < args.tile_rows; row_in_tile += kBlockRows) {
    for (int column_block = 0; column_block < args.num_column_blocks; ++column_block) {
      for (; index < num_tiles; index += static_cast<int>(gridDim.x)) {
        const Block block(args.tiles[index], head, row_in_tile, column_block * kBlockRows);
        if (block.num_queries <= 0 || block.num_keys <= 0) continue;
        draw_block<kAbove128>(problem, block, shared);
        __syncthreads();
        store_block<kByKey>(args, block, shared);
        __syncthreads();
      }
      index -= num_tiles;
    }
  }
}

template <bool kByKey, bool kAbove128>
void launch(cudaStream_t stream, int num_multiprocessors, const DrawAttentionKeepBits& args) {
  const Problem problem{.args = args,
                        .keys = base::philox_round_keys(args.key),
                        .addend = ((256 - args.threshold) & 0x7F) * 0x01010101U,
                        .powers = {1, 2, 4, 8, 16, 32, 64, 128}};
  const int blocks_per_head =
      (num_multiprocessors * kBlocksPerMultiprocessor + args.num_heads - 1) / args.num_heads;
  draw_keep_bits_kernel<kByKey, kAbove128>
      <<<dim3(blocks_per_head, args.num_heads), kThreads, 0, stream>>>(problem);
}

}  // namespace

std::size_t attention_keep_bits_bytes(std::int64_t num_rows, std::int64_t num_heads,
                                      std::int64_t max_length) {
  const std::int64_t num_column_blocks = (max_length + kBlockRows - 1) / kBlockRows;
  return static_cast<std::size_t>(num_heads * num_column_blocks * num_rows) * sizeof(uint4);
}

void draw_attention_keep_bits(cudaStream_t stream, int num_multiprocessors,
                              const DrawAttentionKeepBits& args) {
  const bool is_above_128 = args.threshold > 128;
  if (args.by_key != nullptr) {
    (is_above_128 ? launch<true, true> : launch<true, false>)(stream, num_multiprocessors, args);
  } else {
    (is_above_128 ? launch<false, true> : launch<false, false>)(stream, num_multiprocessors, args);
  }
}

}  // namespace plenum::kernels::cuda

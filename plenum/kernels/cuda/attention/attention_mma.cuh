#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "plenum/kernels/cuda/attention/attention_arguments.h"
#include "plenum/kernels/cuda/attention/attention_sm80.h"
#include "plenum/kernels/cuda/attention/warp_matrix.cuh"

namespace plenum::kernels::cuda {

// What the kernels of attention by mma.sync have in common: a thread block owns 128 rows of a tile, a warp
// some of them, and columns go by in steps of kStep, each in one of two stages of shared memory while the
// next arrives.

inline constexpr int kOwnedRows = 128;

/// How they are cut. At head width 64 a warp has 32 rows: what it reads of the columns then serves two
/// products each. At 128 the sums of 32 rows would not fit its registers.
template <int kWidth>
struct OwnedCut {
  static constexpr int kRows = kOwnedRows;
  static constexpr int kGroups = kWidth == 64 ? 2 : 1;  ///< of 16 rows, of a warp
  static constexpr int kWarpRows = 16 * kGroups;
  static constexpr int kThreads = 32 * kRows / kWarpRows;
};

/// 1 / sqrt K; and what scores are multiplied by where exponentials are powers of two.
template <int kWidth>
inline constexpr float kScoreScale = kWidth == 64 ? 1 / 8.0F : 1 / 11.3137085F;
template <int kWidth>
inline constexpr float kExponentScale = std::numbers::log2e_v<float>* kScoreScale<kWidth>;

/// The rows that a thread block owns, and a head. Items are numbered by the place within tiles, from the last
/// to the first, then by tile: since long sequences come first in the list, work becomes small towards the
/// end.
struct OwnedItem {
  int start;   ///< of the sequence, in the micro-batch
  int length;  ///< of the sequence
  int first;   ///< owned row, within the sequence
  int head;
  int num_rows;            ///< that are owned; none where the tile is shorter
  std::int64_t first_row;  ///< in the micro-batch

  static constexpr int kPlaces = kAttentionTileRows / kOwnedRows;
  static __device__ int count(const AttentionArguments& args) {
    return kPlaces * *args.num_tiles * args.num_heads;
  }

  __device__ OwnedItem(const AttentionArguments& args, int index) {
    const int items_per_place = *args.num_tiles * args.num_heads;
    const int place = kPlaces - 1 - index / items_per_place;
    const int item = index % items_per_place;
    const AttentionTile tile = args.tiles[item / args.num_heads];
    start = tile.start;
    length = tile.length;
    first = tile.first + place * kOwnedRows;
    head = item % args.num_heads;
    num_rows = min(kOwnedRows, length - first);
    first_row = std::int64_t{start} + first;
  }
};

/// Where a thread's sums lie: rows 16 i + 8 half + g, columns 8 n + 2 t + e.
struct LanePlace {
  int g;
  int t;
};
__device__ inline LanePlace lane_place() {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return {lane / 4, lane % 4};
}

/// Columns behind the sequence's end get no weight.
template <int kGroups, int kStep>
__device__ inline void mask_end(Sums<kGroups, kStep>& scores, int num_columns) {
  const int first_column = 2 * lane_place().t;
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
#pragma unroll
    for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (8 * n + first_column + e % 2 >= num_columns) scores.of[i][n][e] = -INFINITY;
      }
    }
  }
}

/// The keep bits of a thread's rows, for the columns of one step after the other.
template <int kGroups, int kStep>
class KeepWords {
 public:
  /// `bits` is one of the two kinds; the warp's rows begin at `row` of the micro-batch, num_rows exist.
  __device__ KeepWords(const AttentionKeepBits& keep, const std::uint32_t* bits, int head, std::int64_t row,
                       int num_rows)
      : words_(bits + keep.first_word(head, row + lane_place().g) + lane_place().t),
        block_stride_(keep.block_stride()),
        num_rows_(num_rows - lane_place().g) {}

  /// To be called for each step in order. A word serves several.
  __device__ void load(int step) {
    constexpr int kSteps = AttentionKeepBits::kBlockColumns / kStep;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::uint32_t& word = of_[i][half];
        const int row = 16 * i + 8 * half;
        if (step % kSteps != 0) {
          word >>= kStep / 4;
        } else if (row < num_rows_) {
          word = __ldg(words_ + step / kSteps * block_stride_ + row * AttentionKeepBits::kWords);
        }
      }
    }
  }

  /// Of element e of the sums of group i and columns 8 n ...
  __device__ bool is_kept(int i, int n, int e) const {
    return (of_[i][e / 2] & (1U << (2 * n + e % 2))) != 0;
  }

 private:
  const std::uint32_t* words_;
  std::int64_t block_stride_;
  int num_rows_;
  std::uint32_t of_[kGroups][2] = {};
};

/// Stands for KeepWords where nothing is dropped.
struct KeepAll {
  __device__ void load(int) {}
};

template <bool kDropout, int kGroups, int kStep>
__device__ inline auto make_keep(const AttentionKeepBits& keep, const std::uint32_t* bits, int head,
                                 std::int64_t row, int num_rows) {
  if constexpr (kDropout) {
    return KeepWords<kGroups, kStep>(keep, bits, head, row, num_rows);
  } else {
    return KeepAll{};
  }
}

/// Launches a kernel that takes items in turn.
template <typename Kernel>
cudaError_t launch_over_items(Kernel* kernel, int blocks_per_multiprocessor, int num_threads,
                              std::size_t shared_bytes, const AttentionArguments& args, cudaStream_t stream) {
  if (cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               static_cast<int>(shared_bytes)))
    return error;
  kernel<<<args.num_multiprocessors * blocks_per_multiprocessor, num_threads, shared_bytes, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace plenum::kernels::cuda

#pragma once

#include <cstdint>

#include "plenum/kernels/cuda/device/wgmma_wide.cuh"

namespace plenum::kernels::cuda {

// How a product C [m, n] = A [m, k] B is cut: into tiles of C that belong to one warpgroup each. The two
// blocks of a cluster work on tiles with the same columns, and load what these share of B only once, a half
// each.

inline constexpr int kBlocksOfCluster = 2;

/// Along the sum products go in steps of 64 elements.
inline constexpr int kStepElements = 64;
inline constexpr int kStepRowBytes = 128;

template <int kRowBlocksOfTile, int kColumnsOfTile, TileB kLayoutOfB>
struct ProductTile {
  static constexpr int kRowBlocks = kRowBlocksOfTile;  ///< of 64 rows
  static constexpr int kRows = 64 * kRowBlocks;
  static constexpr int kColumns = kColumnsOfTile;
  static constexpr TileB kB = kLayoutOfB;

  static constexpr int kBytesOfA = kRows * kStepRowBytes;
  static constexpr int kBytesOfB = kColumns * kStepRowBytes;
  static constexpr int kStageBytes = kBytesOfA + kBytesOfB;

  /// Rows of the boxes in which a block loads its share of a step. B by TileB::Plain lies there as tiles of
  /// 64 columns side by side.
  static constexpr int kBoxRowsOfA = kRows;
  static constexpr int kBoxRowsOfB = (kB == TileB::Transposed ? kColumns : kStepElements) / kBlocksOfCluster;

  /// What a thread has of a tile of C.
  using Accumulators = float[kRowBlocks][kColumns / 2];
};

/// The first row and column of a tile.
struct TilePlace {
  int row;
  int column;
};

/// Which tiles fall to a block: clusters take them in turn, along the rows of C first, so that those of one
/// time share rows of A and go over all of B, which stays in the second-level cache.
template <typename Tile>
class TileWalk {
 public:
  __device__ TileWalk(int m, int n, int block, int num_blocks)
      : rank_(block % kBlocksOfCluster),
        next_(block / kBlocksOfCluster),
        step_(num_blocks / kBlocksOfCluster),
        num_columns_((n + Tile::kColumns - 1) / Tile::kColumns),
        num_tiles_(num_columns_ * ((m + kClusterRows - 1) / kClusterRows)) {}

  __device__ bool is_done() const { return next_ >= num_tiles_; }
  __device__ void advance(int tiles = 1) { next_ += tiles * step_; }
  __device__ TilePlace place() const {
    return {next_ / num_columns_ * kClusterRows + rank_ * Tile::kRows, next_ % num_columns_ * Tile::kColumns};
  }

 private:
  static constexpr int kClusterRows = Tile::kRows * kBlocksOfCluster;
  int rank_;
  int next_;
  int step_;
  int num_columns_;
  int num_tiles_;
};

/// Tells the compiler that accumulators change here.
template <int kRowBlocks, int kNumbers>
__device__ inline void hold(float (&d)[kRowBlocks][kNumbers]) {
#pragma unroll
  for (int r = 0; r < kRowBlocks; ++r)
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) asm volatile("" : "+f"(d[r][i])::"memory");
}

/// Describes tiles of 64 columns that lie side by side: as describe_tile() does, with their distance in its
/// bits 16-29, which only a product by TileB::Plain with more than 64 columns reads.
__device__ inline std::uint64_t describe_tiles(std::uint32_t shared_address) {
  constexpr std::uint64_t kDistanceBits = std::uint64_t{0x3FFF} << 16;
  constexpr std::uint64_t kTile = kTileBytes >> 4;
  return (describe_tile(shared_address) & ~kDistanceBits) | (kTile << 16);
}

/// Issues the products of one step, which are added to d.
template <typename Tile>
__device__ inline void issue_step(typename Tile::Accumulators& d, std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kStepB = Tile::kB == TileB::Plain ? kStepDownColumns : kStepAlongRows;
#pragma unroll
  for (int k = 0; k < 4; ++k)
#pragma unroll
    for (int r = 0; r < Tile::kRowBlocks; ++r)
      wgmma_k16<Tile::kB>(d[r], a + r * (kTileBytes >> 4) + k * kStepAlongRows, b + k * kStepB);
}

}  // namespace plenum::kernels::cuda

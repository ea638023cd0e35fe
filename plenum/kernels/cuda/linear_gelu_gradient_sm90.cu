#include "plenum/kernels/cuda/bfloat16_pair.cuh"
#include "plenum/kernels/cuda/gelu.cuh"
#include "plenum/kernels/cuda/linear_sm90.h"
#include "plenum/kernels/cuda/product_kernel.cuh"
#include "plenum/kernels/cuda/warp_box.cuh"
#include "plenum/kernels/cuda/warpgroup.cuh"

namespace plenum::kernels::cuda {
namespace {

// Of the tiles that were tried this one is the fastest (docs/decisions/cuda.md).
using Tile = ProductTile<2, 128, TileB::Plain, SharedFactor::A>;
static_assert(Tile::kRows == kRowsOfGeluGradientSums);

/// Multiplies by gelu'(u), and adds up the columns over the rows of each tile.
class GeluDerivative {
 public:
  struct Arguments {
    CUtensorMap u;
    CUtensorMap du;
    float* sums;  ///< [row tiles, columns], or null
    int num_rows;
    int num_columns;
  };
  static constexpr int kBoxes = Tile::kRowBlocks * (Tile::kColumns / 64);  ///< of a warp in a tile
  struct Shared {
    alignas(1024) unsigned char boxes[4][kBoxes][kWarpBoxBytes];
    float sums[2][Tile::kColumns];
    Mbarrier filled[4][kBoxes];
    __device__ void init() {
      for (auto& barriers : filled)
        for (Mbarrier& barrier : barriers) barrier.init(1);
    }
  };

  __device__ GeluDerivative(const Arguments& args, Shared& shared)
      : args_(args), shared_(shared), offset_of_lane_(box_offset_of_lane()) {}

  /// Fetches u while the products run.
  __device__ void begin(const TilePlace& place) {
    if (!is_first_lane()) return;
    wait_until_read<0>();
    const int warp = warp_of_group();
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
      Mbarrier& filled = shared_.filled[warp][i];
      filled.arrive_expecting(kWarpBoxBytes);
      copy_box(args_.u, shared_.boxes[warp][i], filled, column_of(i, place), row_of(i, place));
    }
  }

  __device__ void finish(Tile::Accumulators& d, const TilePlace& place) {
    const int warp = warp_of_group();
    float2 totals[Tile::kColumns / 64];
#pragma unroll
    for (int c = 0; c < Tile::kColumns / 64; ++c) {
      float sums[16];
#pragma unroll
      for (int r = 0; r < Tile::kRowBlocks; ++r) {
        const int i = c * Tile::kRowBlocks + r;
        const std::uint32_t box = shared_address(shared_.boxes[warp][i]);
        shared_.filled[warp][i].wait(parity_);
#pragma unroll
        for (int q = 0; q < 4; ++q) multiply_quarter(box, q, d[r] + 32 * c + 8 * q, sums + 4 * q, r > 0);
        fence_shared_writes();
        __syncwarp();
        if (is_first_lane()) {
          store_box(args_.du, box, column_of(i, place), row_of(i, place));
          commit_stores();
        }
      }
      totals[c] = sum_over_rows(sums);
    }
    parity_ ^= 1;
    write_sums(totals, place);
  }

 private:
  __device__ static int row_of(int box, const TilePlace& place) {
    return place.row + 64 * (box % Tile::kRowBlocks) + kWarpBoxRows * warp_of_group();
  }
  __device__ static int column_of(int box, const TilePlace& place) {
    return place.column + 64 * (box / Tile::kRowBlocks);
  }

  /// For 16 columns, of which the thread has two in each half, of two rows.
  __device__ void multiply_quarter(std::uint32_t box, int quarter, const float* d, float* sums,
                                   bool accumulate) const {
    std::uint32_t words[4];
    get_quarter(box, offset_of_lane_, quarter, words);
    float values[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) values[i] = d[i] * gelu_derivative(half_of(words[i / 2], i % 2));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float sum = values[i + 2 * (i / 2)] + values[i + 2 * (i / 2) + 2];
      sums[i] = accumulate ? sums[i] + sum : sum;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = pack(values[2 * i], values[2 * i + 1]);
    put_quarter(box, offset_of_lane_, quarter, words);
  }

  /// Adds up what the eight lanes of a column have: lanes exchange halves of what they hold, until lane l has
  /// the columns 2 l and 2 l + 1 of 64.
  __device__ static float2 sum_over_rows(float (&sums)[16]) {
    exchange_halves<8>(sums);
    exchange_halves<4>(sums);
    exchange_halves<2>(sums);
    return {sums[0], sums[1]};
  }
  template <int kHalf>
  __device__ static void exchange_halves(float (&sums)[16]) {
    constexpr int kOtherLane = 2 * kHalf;
    const bool keeps_upper = (threadIdx.x & kOtherLane) != 0;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float given = keeps_upper ? sums[i] : sums[i + kHalf];
      const float kept = keeps_upper ? sums[i + kHalf] : sums[i];
      sums[i] = kept + __shfl_xor_sync(0xFFFFFFFF, given, kOtherLane);
    }
  }
  /// Adds up what the four warps have: two and two, then both.
  __device__ void write_sums(const float2 (&totals)[Tile::kColumns / 64], const TilePlace& place) {
    const int warp = warp_of_group();
    const int warpgroup = static_cast<int>(threadIdx.x) / 128;
    const auto at = [&](int c) {
      return reinterpret_cast<float2*>(&shared_.sums[warp % 2][64 * c]) + threadIdx.x % 32;
    };
    sync_warpgroup(warpgroup);  // the sums of the tile before have been read
    if (warp < 2)
#pragma unroll
      for (int c = 0; c < Tile::kColumns / 64; ++c) *at(c) = totals[c];
    sync_warpgroup(warpgroup);
    if (warp >= 2)
#pragma unroll
      for (int c = 0; c < Tile::kColumns / 64; ++c) *at(c) = {at(c)->x + totals[c].x, at(c)->y + totals[c].y};
    sync_warpgroup(warpgroup);
    if (args_.sums == nullptr || place.row >= args_.num_rows) return;
    float* const row = args_.sums + static_cast<std::int64_t>(place.row / Tile::kRows) * args_.num_columns;
    for (int i = static_cast<int>(threadIdx.x) % 128; i < Tile::kColumns; i += 128) {
      if (place.column + i >= args_.num_columns) break;
      row[place.column + i] = shared_.sums[0][i] + shared_.sums[1][i];
    }
  }

  const Arguments& args_;
  Shared& shared_;
  std::uint32_t offset_of_lane_;
  std::uint32_t parity_ = 0;
};

}  // namespace

cudaError_t linear_gelu_gradient_sm90(const GeluGradientProduct& args, cudaStream_t stream) {
  ProductArguments<GeluDerivative> product;
  if (cudaError_t error = describe_factors<Tile>(args.dy, args.w, args.m, args.n, args.k, product))
    return error;
  if (cudaError_t error = make_box_map(args.u, args.m, args.n, kWarpBoxRows, product.epilogue.u))
    return error;
  if (cudaError_t error = make_box_map(args.du, args.m, args.n, kWarpBoxRows, product.epilogue.du))
    return error;
  product.epilogue.sums = args.sums;
  product.epilogue.num_rows = static_cast<int>(args.m);
  product.epilogue.num_columns = static_cast<int>(args.n);
  return launch_product<Tile>(product, stream);
}

}  // namespace plenum::kernels::cuda

#include "plenum/kernels/cuda/device/bfloat16_pair.cuh"
#include "plenum/kernels/cuda/device/warp_box.cuh"
#include "plenum/kernels/cuda/device/warpgroup.cuh"
#include "plenum/kernels/cuda/product/mlp_gelu_sm90.h"
#include "plenum/kernels/cuda/product/product_kernel.cuh"

namespace plenum::kernels::cuda {
namespace {

// Of the tiles that were tried this one is the fastest (docs/decisions/cuda.md).
using Tile = ProductTile<2, 192, TileB::Plain>;
static_assert(Tile::kRows == kRowsOfGeluSums);

/// Multiplies by GELU's derivative, and adds up the columns over the rows of each tile.
class TimesDerivative {
 public:
  struct Arguments {
    CUtensorMap derivative;
    CUtensorMap du;
    float* sums;  ///< [row tiles, columns]
    int num_rows;
    int num_columns;
  };
  static constexpr int kBoxes = Tile::kRowBlocks * (Tile::kColumns / 64);  ///< of a warp in a tile
  static constexpr int kSlots = 4;                                         ///< that are there at a time
  struct Shared {
    alignas(1024) unsigned char slots[4][kSlots][kWarpBoxBytes];
    float sums[Tile::kColumns];
    Mbarrier filled[4][kSlots];
    __device__ void init() {
      for (auto& barriers : filled)
        for (Mbarrier& barrier : barriers) barrier.init(1);
    }
  };

  __device__ TimesDerivative(const Arguments& args, Shared& shared)
      : args_(args), shared_(shared), offset_of_lane_(box_offset_of_lane()) {}

  /// Fetches the first boxes of the derivative while the products run.
  __device__ void begin(Tile::Accumulators& d, const TilePlace& place) const {
#pragma unroll
    for (int r = 0; r < Tile::kRowBlocks; ++r)
#pragma unroll
      for (int i = 0; i < Tile::kColumns / 2; ++i) d[r][i] = 0;
    if (!is_first_lane()) return;
    wait_until_read<0>();
#pragma unroll
    for (int i = 0; i < kSlots; ++i) fetch(i, place);
  }

  __device__ void finish(const Tile::Accumulators& d, const TilePlace& place) {
    float2 totals[Tile::kColumns / 64];
#pragma unroll
    for (int c = 0; c < Tile::kColumns / 64; ++c) {
      float sums[16];
#pragma unroll
      for (int r = 0; r < Tile::kRowBlocks; ++r) {
        const int i = c * Tile::kRowBlocks + r;
        const std::uint32_t box = wait_for(i);
#pragma unroll
        for (int q = 0; q < 4; ++q) multiply_quarter(box, q, d[r] + 32 * c + 8 * q, sums + 4 * q, r > 0);
        fence_shared_writes();
        __syncwarp();
        if (is_first_lane()) exchange(i, box, place);
        __syncwarp();
      }
      totals[c] = sum_over_rows(sums);
    }
    write_sums(totals, place);
  }

 private:
  __device__ static int row_of(int box, const TilePlace& place) {
    return place.row + 64 * (box % Tile::kRowBlocks) + kWarpBoxRows * warp_of_group();
  }
  __device__ static int column_of(int box, const TilePlace& place) {
    return place.column + 64 * (box / Tile::kRowBlocks);
  }

  __device__ void fetch(int box, const TilePlace& place) const {
    const int slot = box % kSlots;
    Mbarrier& filled = shared_.filled[warp_of_group()][slot];
    filled.arrive_expecting(kWarpBoxBytes);
    copy_box(args_.derivative, shared_.slots[warp_of_group()][slot], filled, column_of(box, place),
             row_of(box, place));
  }
  /// Where the box lies, once it is there.
  __device__ std::uint32_t wait_for(int box) {
    const int slot = box % kSlots;
    shared_.filled[warp_of_group()][slot].wait(parities_ >> slot & 1);
    parities_ ^= 1U << slot;
    return shared_address(shared_.slots[warp_of_group()][slot]);
  }
  /// Sends a finished box off, and fetches another to the place of the one before it.
  __device__ void exchange(int box, std::uint32_t address, const TilePlace& place) const {
    store_box(args_.du, address, column_of(box, place), row_of(box, place));
    commit_stores();
    const int next = box - 1 + kSlots;
    if (box == 0 || next >= kBoxes) return;
    wait_until_read<1>();
    fetch(next, place);
  }

  /// For 16 columns, of which the thread has two in each half, of two rows.
  __device__ void multiply_quarter(std::uint32_t box, int quarter, const float* d, float* sums,
                                   bool accumulate) const {
    std::uint32_t words[4];
    get_quarter(box, offset_of_lane_, quarter, words);
    float values[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) values[i] = d[i] * half_of(words[i / 2], i % 2);
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
  /// Adds up what the four warps have, from the first to the last, which writes the sums.
  __device__ void write_sums(const float2 (&totals)[Tile::kColumns / 64], const TilePlace& place) const {
    const int warpgroup = static_cast<int>(threadIdx.x) / 128;
    for (int warp = 0; warp < 4; ++warp) {
      if (warp == warp_of_group()) {
#pragma unroll
        for (int c = 0; c < Tile::kColumns / 64; ++c) {
          const int column = 64 * c + 2 * (static_cast<int>(threadIdx.x) % 32);
          float2& before = reinterpret_cast<float2&>(shared_.sums[column]);
          float2 sum = totals[c];
          if (warp > 0) sum = {before.x + sum.x, before.y + sum.y};
          if (warp < 3)
            before = sum;
          else
            write_sum(sum, place.row, place.column + column);
        }
      }
      sync_warpgroup(warpgroup);
    }
  }
  __device__ void write_sum(const float2& sum, int row, int column) const {
    if (row >= args_.num_rows || column >= args_.num_columns) return;
    float* const sums = args_.sums + static_cast<std::int64_t>(row / Tile::kRows) * args_.num_columns;
    reinterpret_cast<float2&>(sums[column]) = sum;
  }

  const Arguments& args_;
  Shared& shared_;
  std::uint32_t offset_of_lane_;
  std::uint32_t parities_ = 0;  ///< of the slots, a bit each
};

}  // namespace

cudaError_t mlp_gelu_backward_sm90(const GeluBackwardProduct& args, cudaStream_t stream) {
  ProductArguments<TimesDerivative> product;
  if (cudaError_t error = describe_factors<Tile>(args.dy, args.w, args.m, args.n, args.k, product))
    return error;
  if (cudaError_t error =
          make_box_map(args.derivative, args.m, args.n, kWarpBoxRows, product.epilogue.derivative))
    return error;
  if (cudaError_t error = make_box_map(args.du, args.m, args.n, kWarpBoxRows, product.epilogue.du))
    return error;
  product.epilogue.sums = args.sums;
  product.epilogue.num_rows = static_cast<int>(args.m);
  product.epilogue.num_columns = static_cast<int>(args.n);
  return launch_product<Tile>(product, stream);
}

}  // namespace plenum::kernels::cuda

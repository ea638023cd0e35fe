#include "plenum/kernels/cuda/device/bfloat16_pair.cuh"
#include "plenum/kernels/cuda/device/gelu.cuh"
#include "plenum/kernels/cuda/device/warp_box.cuh"
#include "plenum/kernels/cuda/device/warpgroup.cuh"
#include "plenum/kernels/cuda/product/mlp_gelu_sm90.h"
#include "plenum/kernels/cuda/product/product_kernel.cuh"

namespace plenum::kernels::cuda {
namespace {

// Of the tiles that were tried this one is the fastest (docs/decisions/cuda.md).
using Tile = ProductTile<2, 192, TileB::Transposed>;

/// Adds the bias, and gives GELU of that and, where it is kept, its derivative.
class GeluAndDerivative {
 public:
  struct Arguments {
    CUtensorMap gelu;
    CUtensorMap derivative;
    bool keeps_derivative;
    const __nv_bfloat16* bias;
    int num_columns;
  };
  static constexpr int kSlots = 2;
  static constexpr int kSlotBytes = 2 * kWarpBoxBytes;  ///< GELU and behind it the derivative
  struct Shared {
    alignas(1024) unsigned char slots[4][kSlots][kSlotBytes];
    __device__ void init() {}
  };

  __device__ GeluAndDerivative(const Arguments& args, Shared& shared)
      : args_(args),
        slots_(shared_address(shared.slots[warp_of_group()])),
        offset_of_lane_(box_offset_of_lane()) {}

  /// The sums begin with the bias.
  __device__ void begin(Tile::Accumulators& d, const TilePlace& place) const {
#pragma unroll
    for (int c = 0; c < Tile::kColumns / 64; ++c) {
      // Of the thread's two columns in each eight.
      std::uint32_t bias[8] = {};
      const int column = place.column + 64 * c;
      if (column < args_.num_columns) {
        const auto* words =
            reinterpret_cast<const std::uint32_t*>(args_.bias + column) + static_cast<int>(threadIdx.x) % 4;
#pragma unroll
        for (int j = 0; j < 8; ++j) bias[j] = __ldg(words + 4 * j);
      }
#pragma unroll
      for (int r = 0; r < Tile::kRowBlocks; ++r)
#pragma unroll
        for (int i = 0; i < 32; ++i) d[r][32 * c + i] = half_of(bias[i / 4], i % 2);
    }
  }

  __device__ void finish(const Tile::Accumulators& d, const TilePlace& place) {
#pragma unroll
    for (int c = 0; c < Tile::kColumns / 64; ++c) {
      const int column = place.column + 64 * c;
      if (column >= args_.num_columns) break;
#pragma unroll
      for (int r = 0; r < Tile::kRowBlocks; ++r) {
        const std::uint32_t box = take_slot();
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          GeluWithDerivative results[8];
#pragma unroll
          for (int i = 0; i < 8; ++i) results[i] = gelu_with_derivative(d[r][32 * c + 8 * q + i]);
          put(box, q, results, &GeluWithDerivative::value);
          if (args_.keeps_derivative) put(box + kWarpBoxBytes, q, results, &GeluWithDerivative::derivative);
        }
        send(box, column, place.row + 64 * r + kWarpBoxRows * warp_of_group());
      }
    }
  }

 private:
  __device__ void put(std::uint32_t box, int quarter, const GeluWithDerivative (&results)[8],
                      float GeluWithDerivative::*part) const {
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = pack(results[2 * i].*part, results[2 * i + 1].*part);
    put_quarter(box, offset_of_lane_, quarter, words);
  }
  /// The next slot, once what left it before was read.
  __device__ std::uint32_t take_slot() {
    if (is_first_lane()) wait_until_read<kSlots - 1>();
    __syncwarp();
    const std::uint32_t box = slots_ + slot_ * kSlotBytes;
    slot_ = (slot_ + 1) % kSlots;
    return box;
  }
  __device__ void send(std::uint32_t box, int column, int row) const {
    fence_shared_writes();
    __syncwarp();
    if (!is_first_lane()) return;
    store_box(args_.gelu, box, column, row);
    if (args_.keeps_derivative) store_box(args_.derivative, box + kWarpBoxBytes, column, row);
    commit_stores();
  }

  const Arguments& args_;
  std::uint32_t slots_;
  std::uint32_t offset_of_lane_;
  int slot_ = 0;
};

}  // namespace

cudaError_t mlp_gelu_forward_sm90(const GeluForwardProduct& args, cudaStream_t stream) {
  ProductArguments<GeluAndDerivative> product;
  if (cudaError_t error = describe_factors<Tile>(args.x, args.w, args.m, args.n, args.k, product))
    return error;
  if (cudaError_t error = make_box_map(args.gelu, args.m, args.n, kWarpBoxRows, product.epilogue.gelu))
    return error;
  product.epilogue.keeps_derivative = args.derivative != nullptr;
  // A map that is never used must describe some matrix, too.
  if (cudaError_t error = make_box_map(args.derivative != nullptr ? args.derivative : args.gelu, args.m,
                                       args.n, kWarpBoxRows, product.epilogue.derivative))
    return error;
  product.epilogue.bias = args.bias;
  product.epilogue.num_columns = static_cast<int>(args.n);
  return launch_product<Tile>(product, stream);
}

}  // namespace plenum::kernels::cuda

#include <algorithm>
#include <array>
#include <span>

#include "plenum/base/check.h"
#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/row_block.cuh"
#include "plenum/kernels/cuda/rows/column_sums.cuh"
#include "plenum/kernels/cuda/rows/layer_norm_gradient.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {
namespace {

constexpr int kRows = 2;

constexpr int kBlocks = 4;  // at once on a multiprocessor

struct Arguments {
  const __nv_bfloat16* dy_TD;
  const __nv_bfloat16* z_TD;
  const float* mean_T;
  const float* inverse_deviation_T;
  const float* gamma_D;
  DeviceDropout dropout;
  DeviceIdentities rows;
  __nv_bfloat16* dz_TD;
  __nv_bfloat16* dx_TD;
  float* sums_PND;  ///< of each block, one behind the other
  int num_rows;
  int width;
};

template <bool kIsAligned>
using Tile = RowTile<kIsAligned, kRows>;

/// dy and z of tiles on their way from memory. Each thread fetches its own vectors and reads them itself, so
/// it waits for nobody; and what is under way takes no registers. Of rows that do not exist dy is zero, which
/// adds nothing to any sum.
template <int kThreads>
class Staging {
 public:
  static constexpr int kTurns = 2;

  template <bool kIsAligned>
  __device__ void fetch(const Arguments& args, const Tile<kIsAligned>& tile, int turn) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      tile.fetch(args.dy_TD, r, own(dy_[turn % kTurns][r]));
      tile.fetch(args.z_TD, r, own(z_[turn % kTurns][r]));
    }
    commit_copies();
  }
  /// Until the oldest turn under way is there.
  __device__ void wait() const {
    wait_for_copies<kTurns - 1>();
  }
  __device__ FloatVector dy(int turn, int r) {
    return unpack(own(dy_[turn % kTurns][r]));
  }
  __device__ FloatVector z(int turn, int r) {
    return unpack(own(z_[turn % kTurns][r]));
  }

 private:
  using OfThreads = PackedVector[kThreads];
  __device__ static PackedVector& own(OfThreads& of_threads) {
    return of_threads[threadIdx.y * blockDim.x + threadIdx.x];
  }

  OfThreads dy_[kTurns][kRows];
  OfThreads z_[kTurns][kRows];
};

template <int kThreads>
struct Shared {
  Staging<kThreads> staging;
  // Two, by turns: one barrier for all rows of a tile then keeps apart what is read from what is written.
  BlockSums<2 * kRows> sums[2];
};

/// What else is read of a tile. A lane has the moments of one row; they are handed out when they are needed.
/// Were they read by all lanes, the compiler would move them to registers that all lanes share, and wait for
/// them to arrive for that.
struct RowNumbers {
  float own_mean;
  float own_inverse_deviation;
  DrawnRows<kRows> drawn;
};

template <bool kIsAligned>
__device__ RowNumbers load_numbers(const Arguments& args, const Tile<kIsAligned>& tile) {
  const int own_row = tile.nearest_row(static_cast<int>(threadIdx.x) % kRows);
  RowNumbers numbers{.own_mean = args.mean_T[own_row],
                     .own_inverse_deviation = args.inverse_deviation_T[own_row],
                     .drawn = {}};
  if (args.dropout.is_on()) numbers.drawn = load_drawn_rows(args.rows, tile);
  return numbers;
}

/// Stores the sums of a block: those of its rows of threads, added in order. `shared` has room for all.
template <bool kIsAligned, int kSums>
__device__ void store_sums(const Tile<kIsAligned>& tile, const FloatVector (&sums)[kSums], int width,
                           float* shared, float* sums_ND) {
  const int num_columns = kSums * width;
  float* const own_ND = blockDim.y == 1 ? sums_ND : shared + threadIdx.y * num_columns;
#pragma unroll
  for (int n = 0; n < kSums; ++n) tile.store_columns(own_ND + n * width, sums[n]);
  if (blockDim.y == 1) return;
  __syncthreads();
  const auto first = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  for (int column = first; column < num_columns; column += static_cast<int>(blockDim.x * blockDim.y)) {
    float sum = shared[column];
    for (unsigned y = 1; y < blockDim.y; ++y) sum += shared[y * num_columns + column];
    sums_ND[column] = sum;
  }
}

/// A row of threads works on rows of its own: narrow rows have several in a block.
template <bool kIsAligned, int kThreads, DropoutPlace kDropoutPlace, bool kSumsInput>
__global__ void __launch_bounds__(kThreads, kThreads == kNarrowThreads ? kBlocks : 1)
    gradient_of_rows(const Arguments args) {
  extern __shared__ std::byte shared_memory[];
  auto& shared = *reinterpret_cast<Shared<kThreads>*>(shared_memory);
  Staging<kThreads>& staging = shared.staging;
  constexpr int kTurns = Staging<kThreads>::kTurns;
  const int num_tiles = (args.num_rows + kRows - 1) / kRows;
  // The block's first; its other rows of threads take those that follow, of which the last may not exist.
  const auto first_of_turn = [](int turn) {
    return static_cast<int>((turn * gridDim.x + blockIdx.x) * blockDim.y);
  };
  const auto tile_of_turn = [&](int turn) {
    return Tile<kIsAligned>(first_of_turn(turn) + static_cast<int>(threadIdx.y), args.num_rows, args.width);
  };
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) staging.fetch(args, tile_of_turn(turn), turn);
  Tile<kIsAligned> tile = tile_of_turn(0);
  RowNumbers next = load_numbers(args, tile);
  const float inverse_width = 1.0F / static_cast<float>(args.width);
  const FloatVector gamma = tile.load_columns(args.gamma_D);
  FloatVector column_sums[kSumsInput ? 3 : 2] = {};
  FloatVector& dgamma = column_sums[0];
  FloatVector& dbeta = column_sums[1];
  for (int turn = 0; first_of_turn(turn) < num_tiles; ++turn) {
    const RowNumbers numbers = next;
    const Tile<kIsAligned> following = tile_of_turn(turn + 1);
    next = load_numbers(args, following);
    DropoutBytes<kRows> bytes;
    if (args.dropout.is_on()) bytes = draw_dropout(args.dropout, numbers.drawn);
    const float own_offset = -numbers.own_mean * numbers.own_inverse_deviation;

    // Sums over each row of g = gamma dy, and of g zhat.
    staging.wait();
    FloatVector g[kRows];
    FloatVector zhat[kRows];
    float inverse[kRows];
    float sums[2 * kRows] = {};
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      inverse[r] = __shfl_sync(kAllLanes, numbers.own_inverse_deviation, r);
      const float offset = __shfl_sync(kAllLanes, own_offset, r);
      FloatVector dy = staging.dy(turn, r);
      const FloatVector z = staging.z(turn, r);
      if (kDropoutPlace == DropoutPlace::BehindNorm && args.dropout.is_on())
        dy = bytes.apply(args.dropout, dy, r);
#pragma unroll
      for (int i = 0; i < kVectorWidth; ++i) {
        zhat[r][i] = fmaf(z[i], inverse[r], offset);
        g[r][i] = gamma[i] * dy[i];
        dgamma[i] = fmaf(dy[i], zhat[r][i], dgamma[i]);
        dbeta[i] += dy[i];
        sums[r] += g[r][i];
        sums[kRows + r] = fmaf(g[r][i], zhat[r][i], sums[kRows + r]);
      }
    }
    block_sums<kThreads>(sums, shared.sums[turn % 2], ThreadRow());
    staging.fetch(args, tile_of_turn(turn + kTurns), turn);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      // dz = (g - mean(g) - zhat mean(g zhat)) / deviation
      const float slope = -inverse[r] * inverse_width * sums[kRows + r];
      const float offset = -inverse[r] * inverse_width * sums[r];
      FloatVector dz;
#pragma unroll
      for (int i = 0; i < kVectorWidth; ++i)
        dz[i] = fmaf(g[r][i], inverse[r], fmaf(zhat[r][i], slope, offset));
      tile.store(args.dz_TD, r, dz);
      if (kDropoutPlace == DropoutPlace::BeforeNorm && args.dropout.is_on()) {
        dz = bytes.apply(args.dropout, dz, r);
        tile.store(args.dx_TD, r, dz);
      }
      if constexpr (kSumsInput) column_sums[2] = sum_of(column_sums[2], dz);
    }
    tile = following;
  }
  wait_for_copies();  // they write zeros for turns that do not exist
  __syncthreads();
  static_assert(sizeof(staging) >= kMaxLayerNormSums * kThreads * sizeof(FloatVector));
  constexpr std::int64_t kSums = std::size(column_sums);
  store_sums(tile, column_sums, args.width, reinterpret_cast<float*>(&staging),
             args.sums_PND + blockIdx.x * kSums * args.width);
}

}  // namespace

void layer_norm_gradient(const tensor::Stream& stream, const LayerNormGradient& args) {
  const std::int64_t num_rows = args.z_TD.size(0);
  const std::int64_t width = args.z_TD.size(1);
  if (num_rows == 0) return;
  base::check(args.dropout_place == DropoutPlace::BeforeNorm || !args.db_D,
              "db_D is summed only where dropout comes before the norm");
  const Arguments arguments = {.dy_TD = bfloat16_data(args.dy_TD),
                               .z_TD = bfloat16_data(args.z_TD),
                               .mean_T = args.mean_T.data<float>(),
                               .inverse_deviation_T = args.inverse_deviation_T.data<float>(),
                               .gamma_D = args.gamma_D.data<float>(),
                               .dropout = DeviceDropout(args.dropout),
                               .rows = DeviceIdentities(args.rows),
                               .dz_TD = bfloat16_data(args.dz_TD),
                               .dx_TD = bfloat16_data(args.dx_TD),
                               .sums_PND = reinterpret_cast<float*>(stream.scratch().data()),
                               .num_rows = static_cast<int>(num_rows),
                               .width = static_cast<int>(width)};
  const bool is_aligned =
      are_rows_aligned(width, args.dy_TD, args.z_TD, args.gamma_D, args.dz_TD, args.dx_TD);
  const int num_threads = threads_of_row(width);
  unsigned num_parts = 0;
  for_row_variant(is_aligned, num_threads, [&](auto aligned, auto max_threads) {
    constexpr bool kIsAligned = aligned();
    constexpr int kThreads = max_threads();
    const auto kernel = args.dropout_place == DropoutPlace::BehindNorm
                            ? gradient_of_rows<kIsAligned, kThreads, DropoutPlace::BehindNorm, false>
                        : args.db_D ? gradient_of_rows<kIsAligned, kThreads, DropoutPlace::BeforeNorm, true>
                                    : gradient_of_rows<kIsAligned, kThreads, DropoutPlace::BeforeNorm, false>;
    const dim3 block(static_cast<unsigned>(num_threads), static_cast<unsigned>(kThreads / num_threads));
    num_parts = std::min((Tile<kIsAligned>::count(num_rows) + block.y - 1) / block.y, kMaxLayerNormParts);
    constexpr std::size_t kSharedBytes = sizeof(Shared<kThreads>);
    tensor::check_cuda(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
        "give layer norm its shared memory");
    kernel<<<num_parts, block, kSharedBytes, stream.cuda().handle()>>>(arguments);
  });
  tensor::check_cuda(cudaGetLastError(), "start layer norm's gradient");
  const std::array<float*, kMaxLayerNormSums> totals = {
      args.dgamma_D.data<float>(), args.dbeta_D.data<float>(), args.db_D ? args.db_D.data<float>() : nullptr};
  add_block_sums(stream, arguments.sums_PND, num_parts, arguments.width,
                 std::span(totals).first(args.db_D ? kMaxLayerNormSums : kMaxLayerNormSums - 1));
}

}  // namespace plenum::kernels::cuda

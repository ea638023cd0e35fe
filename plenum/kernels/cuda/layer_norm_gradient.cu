#include "plenum/kernels/cuda/layer_norm_gradient.h"
#include "plenum/kernels/cuda/row_block.cuh"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {
namespace {

constexpr int kRows = 2;
constexpr int kBlocks = 4;  // at once on a multiprocessor

// Rows are cut into at most this many parts, a block each, whose sums over rows are added in order
// afterwards. An H200 works on all of them at the same time: it has room for 528. More would cost more memory
// traffic (4 bytes for each part, column and sum, written and read) than they bring.
constexpr std::int64_t kMaxParts = 512;

std::int64_t rows_of_part(std::int64_t num_rows) {
  const std::int64_t least = (num_rows + kMaxParts - 1) / kMaxParts;
  return (least + kRows - 1) / kRows * kRows;
}

/// What is summed over all rows: dy zhat for dgamma, dy for dbeta, and dx where it is asked for.
constexpr int kMaxSums = 3;

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
  float* sums_PND;  ///< of each part
  std::int64_t num_rows;
  std::int64_t rows_of_part;
  int width;
};

template <bool kIsAligned>
using Tile = RowTile<kIsAligned, kRows>;

/// What is read of rows. Of those that do not exist dy is zero, which adds nothing to any sum.
struct LoadedRows {
  PackedVector dy[kRows];
  PackedVector z[kRows];
  // A lane has those of one row; they are handed out when they are needed. Were they read by all lanes, the
  // compiler would move them to registers that all lanes share, and wait for them to arrive for that.
  float own_mean;
  float own_inverse_deviation;
  DrawnRows<kRows> drawn;

  __device__ float mean(int r) const { return __shfl_sync(kAllLanes, own_mean, r); }
  __device__ float inverse_deviation(int r) const { return __shfl_sync(kAllLanes, own_inverse_deviation, r); }
};

template <bool kIsAligned>
__device__ LoadedRows load_rows(const Arguments& args, const Tile<kIsAligned>& tile) {
  LoadedRows loaded;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    loaded.dy[r] = tile.load(args.dy_TD, r);
    loaded.z[r] = tile.load(args.z_TD, r);
  }
  const std::int64_t own_row = tile.nearest_row(static_cast<int>(threadIdx.x) % kRows);
  loaded.own_mean = args.mean_T[own_row];
  loaded.own_inverse_deviation = args.inverse_deviation_T[own_row];
  if (args.dropout.is_on()) loaded.drawn = load_drawn_rows(args.rows, tile);
  return loaded;
}

/// Makes the compiler take these for new values: it would keep what it unpacked before the sums until behind
/// them, in 64 registers instead of 32.
__device__ inline void forget(PackedVector& packed) {
  asm volatile("" : "+r"(packed.words.x), "+r"(packed.words.y), "+r"(packed.words.z), "+r"(packed.words.w));
}

template <bool kIsAligned, int kMaxThreads, DropoutPlace kDropoutPlace, bool kSumsInput>
__global__ void __launch_bounds__(kMaxThreads, kMaxThreads == kNarrowThreads ? kBlocks : 1)
    gradient_of_rows(const Arguments args) {
  // Two, by turns: one barrier for all rows of a tile then keeps apart what is read from what is written.
  __shared__ BlockSums<2 * kRows> shared[2];
  const std::int64_t first = blockIdx.x * args.rows_of_part;
  const std::int64_t end = min(args.num_rows, first + args.rows_of_part);
  const float inverse_width = 1.0F / static_cast<float>(args.width);
  Tile<kIsAligned> tile(first, end, args.width);
  const FloatVector gamma = tile.load_columns(args.gamma_D);
  FloatVector dgamma{};
  FloatVector dbeta{};
  FloatVector db{};
  LoadedRows next = load_rows(args, tile);
  for (int turn = 0; tile.exists(0); turn ^= 1) {
    LoadedRows rows = next;
    const Tile<kIsAligned> following(tile.row(kRows), end, args.width);
    next = load_rows(args, following);
    DropoutBytes<kRows> bytes;
    if (args.dropout.is_on()) bytes = draw_dropout(args.dropout, rows.drawn);
    const auto dy_of_row = [&](int r) {
      const FloatVector dy = unpack(rows.dy[r]);
      if (kDropoutPlace == DropoutPlace::BeforeNorm || !args.dropout.is_on()) return dy;
      return bytes.apply(args.dropout, dy, r);
    };

    // Sums over each row of g = gamma dy, and of g zhat.
    float sums[2 * kRows] = {};
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const FloatVector dy = dy_of_row(r);
      const FloatVector z = unpack(rows.z[r]);
      const float mean = rows.mean(r);
      const float inverse = rows.inverse_deviation(r);
#pragma unroll
      for (int i = 0; i < kVectorWidth; ++i) {
        const float zhat = normalised(z[i], mean, inverse);
        const float g = gamma[i] * dy[i];
        dgamma[i] = fmaf(dy[i], zhat, dgamma[i]);
        dbeta[i] += dy[i];
        sums[r] += g;
        sums[kRows + r] = fmaf(g, zhat, sums[kRows + r]);
      }
    }
    block_sums<kMaxThreads>(sums, shared[turn]);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      // dz = (g - mean(g) - zhat mean(g zhat)) / deviation = g / deviation + slope z + offset
      const float inverse = rows.inverse_deviation(r);
      const float slope = -inverse * inverse * inverse_width * sums[kRows + r];
      const float offset = -inverse * inverse_width * sums[r] - slope * rows.mean(r);
      forget(rows.dy[r]);
      forget(rows.z[r]);
      const FloatVector dy = dy_of_row(r);
      const FloatVector z = unpack(rows.z[r]);
      FloatVector dz;
#pragma unroll
      for (int i = 0; i < kVectorWidth; ++i)
        dz[i] = fmaf(dy[i], gamma[i] * inverse, fmaf(z[i], slope, offset));
      tile.store(args.dz_TD, r, dz);
      if (kDropoutPlace == DropoutPlace::BeforeNorm && args.dropout.is_on()) {
        dz = bytes.apply(args.dropout, dz, r);
        tile.store(args.dx_TD, r, dz);
      }
      if (kSumsInput && tile.exists(r)) db = sum_of(db, dz);
    }
    tile = following;
  }
  constexpr int kSums = kSumsInput ? 3 : 2;
  float* const sums_ND = args.sums_PND + std::int64_t{blockIdx.x} * kSums * args.width;
  tile.store_columns(sums_ND, dgamma);
  tile.store_columns(sums_ND + args.width, dbeta);
  if (kSumsInput) tile.store_columns(sums_ND + 2 * args.width, db);
}

/// Where the sums over all rows are added to.
struct Gradients {
  float* at[kMaxSums];
};

// Adds the sums of all parts. A block has 32 columns of them, one behind the other; each of its warps takes
// every 32nd part.
__global__ void __launch_bounds__(kWarpSize* kMaxWarps)
    add_parts(const float* sums_PND, int num_parts, int num_columns, int width, const Gradients gradients) {
  __shared__ float sums[kMaxWarps][kWarpSize + 1];
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int first_column = static_cast<int>(blockIdx.x) * kWarpSize;
  float sum = 0;
  if (first_column + lane < num_columns) {
#pragma unroll 16
    for (int part = warp; part < num_parts; part += kMaxWarps) {
      sum += sums_PND[std::int64_t{part} * num_columns + first_column + lane];
    }
  }
  sums[warp][lane] = sum;
  __syncthreads();
  // Now each warp has one column.
  const float total = warp_sum(sums[lane][warp]);
  const int column = first_column + warp;
  if (lane == 0 && column < num_columns) gradients.at[column / width][column % width] += total;
}

}  // namespace

void layer_norm_gradient(const tensor::Stream& stream, const LayerNormGradient& args) {
  const std::int64_t num_rows = args.z_TD.size(0);
  const std::int64_t width = args.z_TD.size(1);
  if (num_rows == 0) return;
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
                               .num_rows = num_rows,
                               .rows_of_part = rows_of_part(num_rows),
                               .width = static_cast<int>(width)};
  const bool is_aligned =
      are_rows_aligned(width, args.dy_TD, args.z_TD, args.gamma_D, args.dz_TD, args.dx_TD);
  const int num_threads = threads_of_row(width);
  const auto num_parts =
      static_cast<unsigned>((num_rows + arguments.rows_of_part - 1) / arguments.rows_of_part);
  const cudaStream_t queue = stream.cuda().handle();
  for_row_variant(is_aligned, num_threads, [&](auto aligned, auto max_threads) {
    constexpr bool kIsAligned = aligned();
    constexpr int kMaxThreads = max_threads();
    const auto kernel = args.dropout_place == DropoutPlace::BehindNorm
                            ? gradient_of_rows<kIsAligned, kMaxThreads, DropoutPlace::BehindNorm, false>
                        : args.db_D
                            ? gradient_of_rows<kIsAligned, kMaxThreads, DropoutPlace::BeforeNorm, true>
                            : gradient_of_rows<kIsAligned, kMaxThreads, DropoutPlace::BeforeNorm, false>;
    kernel<<<num_parts, num_threads, 0, queue>>>(arguments);
  });
  const Gradients gradients = {args.dgamma_D.data<float>(), args.dbeta_D.data<float>(),
                               args.db_D ? args.db_D.data<float>() : nullptr};
  const std::int64_t num_columns = (args.db_D ? 3 : 2) * width;
  const auto num_stripes = static_cast<unsigned>((num_columns + kWarpSize - 1) / kWarpSize);
  add_parts<<<num_stripes, kWarpSize * kMaxWarps, 0, queue>>>(arguments.sums_PND, static_cast<int>(num_parts),
                                                              static_cast<int>(num_columns), arguments.width,
                                                              gradients);
  tensor::check_cuda(cudaGetLastError(), "start layer norm's gradient");
}

std::size_t layer_norm_gradient_scratch_bytes(std::int64_t width) {
  threads_of_row(width);  // so that whoever plans memory learns what width is too large
  return static_cast<std::size_t>(kMaxParts * kMaxSums * width) * sizeof(float);
}

}  // namespace plenum::kernels::cuda

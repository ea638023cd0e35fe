#include "plenum/kernels/cuda/layer_norm_gradient.h"
#include "plenum/kernels/cuda/row_block.cuh"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {
namespace {

// Rows are cut into at most this many parts, whose sums for dgamma and dbeta are added in order afterwards.
// The GPU works on all of them at the same time: an H200 has room for 528. More would cost more memory
// traffic (8 bytes for each part and column, written and read) than they bring.
constexpr std::int64_t kMaxParts = 512;

std::int64_t rows_of_part(std::int64_t num_rows) {
  const std::int64_t least = (num_rows + kMaxParts - 1) / kMaxParts;
  return (least + kRowsAtOnce - 1) / kRowsAtOnce * kRowsAtOnce;
}

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
  float* sums_P2D;  ///< for each part dgamma, then dbeta
  std::int64_t num_rows;
  std::int64_t rows_of_part;
  int width;
};

/// What is read for four rows.
struct LoadedRows {
  PackedVector dy[kRowsAtOnce];
  PackedVector z[kRowsAtOnce];
  float mean[kRowsAtOnce];
  float inverse_deviation[kRowsAtOnce];
};

// Rows beyond the end become zeros, which add nothing to any sum.
template <bool kIsAligned>
__device__ LoadedRows load_rows(const Arguments& args, RowRange range, int column) {
  LoadedRows loaded = {};
#pragma unroll
  for (int r = 0; r < kRowsAtOnce; ++r) {
    const std::int64_t row = range.first + r;
    if (row >= range.end) continue;
    loaded.dy[r] = load_packed<kIsAligned>(args.dy_TD + row * args.width, column, args.width);
    loaded.z[r] = load_packed<kIsAligned>(args.z_TD + row * args.width, column, args.width);
    loaded.mean[r] = args.mean_T[row];
    loaded.inverse_deviation[r] = args.inverse_deviation_T[row];
  }
  return loaded;
}

/// What the gradient of a row is made of: g = gamma dy.
struct RowTerms {
  FloatVector dy;
  FloatVector zhat;
  FloatVector g;
};

template <DropoutPlace kDropoutPlace>
__device__ RowTerms terms_of_row(const LoadedRows& rows, int r, const FloatVector& gamma,
                                 const DeviceDropout& dropout, const DropoutBytes& bytes) {
  RowTerms terms = {.dy = unpack(rows.dy[r]), .zhat = unpack(rows.z[r]), .g = {}};
  if (kDropoutPlace == DropoutPlace::BehindNorm && dropout.is_on())
    terms.dy = bytes.apply(dropout, terms.dy, r);
#pragma unroll
  for (int i = 0; i < kVectorWidth; ++i) {
    terms.zhat[i] = (terms.zhat[i] - rows.mean[r]) * rows.inverse_deviation[r];
    terms.g[i] = gamma[i] * terms.dy[i];
  }
  return terms;
}

/// Makes the compiler take these for new values: what was made of them before the sums is made again behind
/// them, and does not take 64 registers meanwhile.
__device__ inline void forget(PackedVector& packed) {
  asm volatile("" : "+r"(packed.words.x), "+r"(packed.words.y), "+r"(packed.words.z), "+r"(packed.words.w));
}

template <bool kIsAligned, int kMaxThreads, DropoutPlace kDropoutPlace>
__global__ void __launch_bounds__(kMaxThreads) gradient_of_rows(const Arguments args) {
  // Two, by turns: one barrier for each four rows then keeps apart what is read from what is written.
  __shared__ BlockSums<2 * kRowsAtOnce> shared[2];
  const int width = args.width;
  const int column = static_cast<int>(threadIdx.x) * kVectorWidth;
  const float inverse_width = 1.0F / static_cast<float>(width);
  const FloatVector gamma = load_vector<kIsAligned>(args.gamma_D, column, width);
  FloatVector dgamma{};
  FloatVector dbeta{};
  RowRange range = {blockIdx.x * args.rows_of_part, args.num_rows};
  range.end = min(range.end, range.first + args.rows_of_part);
  LoadedRows next = load_rows<kIsAligned>(args, range, column);
  for (int turn = 0; range.first < range.end; turn ^= 1) {
    LoadedRows rows = next;
    const RowRange following = {range.first + kRowsAtOnce, range.end};
    next = load_rows<kIsAligned>(args, following, column);
    DropoutBytes bytes{};
    if (args.dropout.is_on()) bytes = draw_dropout(args.dropout, args.rows, range);

    float sums[2 * kRowsAtOnce] = {};
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const RowTerms terms = terms_of_row<kDropoutPlace>(rows, r, gamma, args.dropout, bytes);
#pragma unroll
      for (int i = 0; i < kVectorWidth; ++i) {
        dgamma[i] += terms.dy[i] * terms.zhat[i];
        dbeta[i] += terms.dy[i];
        sums[r] += terms.g[i];
        sums[kRowsAtOnce + r] += terms.g[i] * terms.zhat[i];
      }
    }
    block_sums(sums, shared[turn]);
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      if (range.first + r >= range.end) continue;
      const std::int64_t begin = (range.first + r) * width;
      const float mean_g = sums[r] * inverse_width;
      const float mean_g_zhat = sums[kRowsAtOnce + r] * inverse_width;
      forget(rows.dy[r]);
      forget(rows.z[r]);
      const RowTerms terms = terms_of_row<kDropoutPlace>(rows, r, gamma, args.dropout, bytes);
      FloatVector dz;
#pragma unroll
      for (int i = 0; i < kVectorWidth; ++i) {
        dz[i] = rows.inverse_deviation[r] * (terms.g[i] - mean_g - terms.zhat[i] * mean_g_zhat);
      }
      store_vector<kIsAligned>(args.dz_TD + begin, column, width, dz);
      if (kDropoutPlace == DropoutPlace::BeforeNorm && args.dropout.is_on()) {
        store_vector<kIsAligned>(args.dx_TD + begin, column, width, bytes.apply(args.dropout, dz, r));
      }
    }
    range = following;
  }
  float* const sums_2D = args.sums_P2D + std::int64_t{blockIdx.x} * 2 * width;
  store_vector<kIsAligned>(sums_2D, column, width, dgamma);
  store_vector<kIsAligned>(sums_2D + width, column, width, dbeta);
}

// Adds the sums of all parts to dgamma and dbeta. A block has 32 columns of the two; each of its warps takes
// every 32nd part.
__global__ void __launch_bounds__(kWarpSize* kMaxWarps)
    add_parts(const float* sums_P2D, int num_parts, int width, float* dgamma_D, float* dbeta_D) {
  __shared__ float sums[kMaxWarps][kWarpSize + 1];
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int first_column = static_cast<int>(blockIdx.x) * kWarpSize;
  float sum = 0;
  if (first_column + lane < 2 * width) {
#pragma unroll 8
    for (int part = warp; part < num_parts; part += kMaxWarps) {
      sum += sums_P2D[std::int64_t{part} * 2 * width + first_column + lane];
    }
  }
  sums[warp][lane] = sum;
  __syncthreads();
  // Now each warp has one column.
  const float total = warp_sum(sums[lane][warp]);
  const int column = first_column + warp;
  if (lane != 0 || column >= 2 * width) return;
  float& gradient = column < width ? dgamma_D[column] : dbeta_D[column - width];
  gradient += total;
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
                               .sums_P2D = reinterpret_cast<float*>(stream.scratch().data()),
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
    if (args.dropout_place == DropoutPlace::BeforeNorm) {
      gradient_of_rows<aligned(), max_threads(), DropoutPlace::BeforeNorm>
          <<<num_parts, num_threads, 0, queue>>>(arguments);
    } else {
      gradient_of_rows<aligned(), max_threads(), DropoutPlace::BehindNorm>
          <<<num_parts, num_threads, 0, queue>>>(arguments);
    }
  });
  const auto num_stripes = static_cast<unsigned>((2 * width + kWarpSize - 1) / kWarpSize);
  add_parts<<<num_stripes, kWarpSize * kMaxWarps, 0, queue>>>(arguments.sums_P2D, static_cast<int>(num_parts),
                                                              arguments.width, args.dgamma_D.data<float>(),
                                                              args.dbeta_D.data<float>());
  tensor::check_cuda(cudaGetLastError(), "start layer norm's gradient");
}

std::size_t layer_norm_gradient_scratch_bytes(std::int64_t width) {
  return static_cast<std::size_t>(kMaxParts * 2 * width) * sizeof(float);
}

}  // namespace plenum::kernels::cuda
